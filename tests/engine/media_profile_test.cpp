// The rows of an image with an orientation or with transparency are those of the pixels that the
// loader of its profile makes of it; the frames of a video are those that it takes.
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "fovea/fovea.h"
#include "models/load_model.h"
#include "support/golden.h"
#include "support/media_profile_cases.h"

namespace fovea {
namespace {

class MediaProfileRows : public ::testing::TestWithParam<const char*> {};

TEST_P(MediaProfileRows, AreThoseOfTheSamePixelsAsPlainRgb) {
  Engine engine = Engine::load(test::golden_folder("qwen3_vl", "golden.safetensors"),
                               {.device = "cpu",
                                .num_threads = 2,
                                .media = {.profile = test::kMediaProfiles.at(GetParam())},
                                .graphs = {.cudagraph_mm_encoder = false}});
  std::vector<MediaItem> files;
  std::vector<MediaItem> pixels;
  for (const test::MediaProfileCase& image : test::media_profile_cases(GetParam())) {
    files.push_back(image_bytes(image.file, image.name));
    pixels.push_back(image_rgb(image.rgb, image.width_px, image.height_px, image.name));
  }
  const std::vector<Embedding> from_files = engine.encode(files);
  const std::vector<Embedding> from_pixels = engine.encode(pixels);
  ASSERT_FALSE(from_files.empty());
  for (std::size_t i = 0; i < from_files.size(); ++i) {
    EXPECT_GT(from_files[i].rows, 0) << from_files[i].name;
    EXPECT_EQ(from_files[i].grid_thw, from_pixels[i].grid_thw) << from_files[i].name;
    EXPECT_TRUE(from_files[i].data == from_pixels[i].data) << from_files[i].name;
  }
}

INSTANTIATE_TEST_SUITE_P(Profiles, MediaProfileRows,
                         ::testing::Values("vllm", "vllm-0.23", "transformers", "sglang"),
                         [](const auto& profile) {
                           std::string name = profile.param;
                           std::erase_if(name, [](char c) { return c == '-' || c == '.'; });
                           return name;
                         });

using Indices = std::vector<std::int64_t>;

/// Frames that a family samples of 16 frames at 60 per second, when asked for so many per second.
Indices sampled(const std::string& family, MediaProfile profile, double fps) {
  const std::unique_ptr<EncoderGraphModel> model = plan_model(
      checkpoint::read_hf_config(test::golden_folder(family, "config.json")), {.profile = profile});
  return model->processor().sample_frames(16, 60.0, fps);
}

// Indices are those of the loaders of vLLM 0.33.
TEST(SampledRate, IsThirtyAtMostForQwenInTheProfileOfVllm) {
  for (const char* family : {"qwen2_vl", "qwen2_5_vl"}) {
    SCOPED_TRACE(family);
    const Indices thirty{0, 2, 4, 6, 8, 10, 12, 14};
    EXPECT_EQ(sampled(family, MediaProfile::kVllm, 30), thirty);
    EXPECT_EQ(sampled(family, MediaProfile::kVllm, 60), thirty);
    EXPECT_EQ(sampled(family, MediaProfile::kTransformers, 60).size(), 16);
  }
  for (const char* family : {"qwen3_vl", "qwen3_5"}) {
    SCOPED_TRACE(family);
    const Indices thirty{0, 2, 4, 6, 9, 11, 13, 15};
    EXPECT_EQ(sampled(family, MediaProfile::kVllm, 30), thirty);
    EXPECT_EQ(sampled(family, MediaProfile::kVllm, 60), thirty);
    EXPECT_EQ(sampled(family, MediaProfile::kTransformers, 60).size(), 16);
  }
}

TEST(SampledRate, IsAnyForOtherFamilies) {
  for (const char* family : {"glm4v", "internvl", "internvl_chat"}) {
    SCOPED_TRACE(family);
    EXPECT_EQ(sampled(family, MediaProfile::kVllm, 60).size(), 16);
    EXPECT_EQ(sampled(family, MediaProfile::kVllm, 30).size(), 8);
  }
}

}  // namespace
}  // namespace fovea
