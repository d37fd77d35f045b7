// From images to the bytes of views, compared with those of the reference, for families whose
// reference data is not in the repository.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/safetensors.h"
#include "core/file.h"
#include "media/decode_image.h"
#include "models/load_model.h"
#include "support/crc32.h"
#include "support/golden.h"

namespace fovea::common {
namespace {

constexpr const char* kGoldenFile = "golden.safetensors";

/// The number that a file has under a name; of several, the last.
std::int64_t number(const checkpoint::SafetensorsFile& file, const std::string& name) {
  const ConstTensorView numbers = file.tensor(name);
  return numbers.as<std::int64_t>()[numbers.shape.elements() - 1];
}

/// Compares the views of an item, [views, 3, side, side], with what a file has under `name`.
/// @param frames of the item, of equal size.
void expect_views(const ItemProcessor& processor, const ItemPlan& plan,
                  std::span<const RgbView> frames, const checkpoint::SafetensorsFile& file,
                  const std::string& name) {
  std::vector<std::uint8_t> pixels(plan.pixel_bytes);
  for (std::size_t i = 0; i < frames.size(); ++i) {
    processor.fill_frame(plan, static_cast<std::int64_t>(i), frames[i], pixels);
  }
  const auto side = static_cast<std::size_t>(number(file, name + ".shape"));
  const std::size_t area = side * side;
  ASSERT_EQ(pixels.size() % (3 * area), 0U);
  std::vector<std::uint8_t> planes;
  for (std::size_t view = 0; view < pixels.size(); view += 3 * area) {
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t i = 0; i < area; ++i) planes.push_back(pixels[view + 3 * i + c]);
    }
  }
  EXPECT_EQ(test::crc32_of(planes), number(file, name + "_u8.crc32"));
}

void expect_image(const ItemProcessor& processor, const RgbView& image,
                  const checkpoint::SafetensorsFile& file, const std::string& name) {
  expect_views(processor, processor.plan_image(image.width_px, image.height_px), {&image, 1}, file,
               name);
}

class GoldenViews : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (folders_.empty()) {
      GTEST_SKIP() << GetParam() << " is not in the repository: FOVEA_GOLDEN_DIR names a folder "
                   << "that holds it";
    }
  }

  std::vector<std::string> folders_ = test::golden_folders(GetParam(), kGoldenFile);
};

TEST_P(GoldenViews, OfImagesAreTheBytesOfTheReference) {
  for (const std::string& folder : folders_) {
    const auto model = plan_model(checkpoint::read_hf_config(folder), {});
    const checkpoint::SafetensorsFile file(folder + "/" + kGoldenFile);
    int images = 0;
    for (const auto& entry : std::filesystem::directory_iterator(folder + "/images")) {
      const std::string path = entry.path().string();
      SCOPED_TRACE(path);
      const media::Image image = media::decode_image(read_file(path, 1 << 24), path, {});
      const RgbView view{image.rgb.data(), image.width_px, image.height_px};
      expect_image(model->processor(), view, file,
                   entry.path().stem().string() + ".in.pixel_values");
      ++images;
    }
    EXPECT_GE(images, 1);
  }
}

TEST_P(GoldenViews, OfSmallImagesAreTheBytesOfTheReference) {
  for (const std::string& folder : folders_) {
    const auto model = plan_model(checkpoint::read_hf_config(folder), {});
    const checkpoint::SafetensorsFile file(folder + "/preprocess.safetensors");
    for (const std::string size : {"1x1", "17x9", "40x66"}) {
      SCOPED_TRACE(folder + " " + size);
      const ConstTensorView rgb = file.tensor(size + ".rgb");
      const RgbView image{rgb.as<std::uint8_t>(), rgb.shape[1], rgb.shape[0]};
      expect_image(model->processor(), image, file, size + ".pixel_values");
    }
  }
}

TEST_P(GoldenViews, OfVideosAreTheBytesOfTheReference) {
  for (const std::string& folder : folders_) {
    const auto model = plan_model(checkpoint::read_hf_config(folder), {});
    const checkpoint::SafetensorsFile file(folder + "/" + kGoldenFile);
    if (std::ranges::count(model->graph_spec().modalities, Modality::kVideo) == 0) continue;
    SCOPED_TRACE(folder);
    const ConstTensorView video = file.tensor("video.frames");  // [frames, height, width, 3]
    const std::int64_t height = video.shape[1];
    const std::int64_t width = video.shape[2];
    std::vector<RgbView> frames;
    for (std::int64_t i = 0; i < video.shape[0]; ++i) {
      frames.push_back({video.as<std::uint8_t>() + i * height * width * 3, width, height});
    }
    const ItemProcessor& processor = model->processor();
    const ItemPlan plan = processor.plan_video(std::ssize(frames), width, height);
    // SmolVLM has its frames where others have images.
    const bool is_apart = file.find("video.in.pixel_values_videos.shape") != nullptr;
    expect_views(processor, plan, frames, file,
                 is_apart ? "video.in.pixel_values_videos" : "video.in.pixel_values");
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, GoldenViews,
                         ::testing::Values("aya_vision", "cohere2_vision", "deepseek_vl", "gemma3",
                                           "gemma3_pan_and_scan", "idefics3", "llava_next",
                                           "llava_onevision", "paligemma", "smolvlm"),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace
}  // namespace fovea::common
