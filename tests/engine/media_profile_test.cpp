// The rows of an image with an orientation or with transparency are those of the pixels that the
// loader of its profile makes of it.
#include <gtest/gtest.h>

#include "fovea/fovea.h"
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

}  // namespace
}  // namespace fovea
