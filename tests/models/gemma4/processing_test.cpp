// Sizes of images and frames of Gemma 4, worked out with the reference, and their bytes.
#include <gtest/gtest.h>

#include "models/config_files.h"
#include "models/gemma4/config.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/golden_bytes.h"

namespace fovea::gemma4 {
namespace {

constexpr std::int64_t kFramePatches = 70 * 9;  // at most

common::GridProcessor processor_of(const test::ConfigTexts& texts, const Config& config = {}) {
  return common::GridProcessor(read_processing(test::config_files(texts), config, {}));
}

TEST(Gemma4Processing, ImagesFillTheirTokens) {
  struct Case {
    std::int64_t width, height, tokens;
  };
  const common::GridProcessor processor = processor_of({});
  for (const Case& c :
       {Case{1240, 1754, 266}, Case{1920, 1080, 264}, Case{2600, 1900, 266}, Case{2000, 90, 234},
        Case{333, 77, 272}, Case{40, 500, 236}, Case{640, 480, 266}, Case{1, 1, 256}}) {
    SCOPED_TRACE(std::to_string(c.width) + "x" + std::to_string(c.height));
    const ItemPlan plan = processor.plan_image(c.width, c.height);
    EXPECT_EQ(plan.spec.out_rows, c.tokens);
    EXPECT_EQ(plan.spec.input_rows, 9 * c.tokens);
    EXPECT_FALSE(plan.has_grid_thw);
  }
}

TEST(Gemma4Processing, AThinImageIsOneTokenWide) {
  const common::GridProcessor processor = processor_of({});
  EXPECT_EQ(processor.plan_image(1, 100000).grid, (std::array<std::int64_t, 3>{1, 840, 3}));
  EXPECT_EQ(processor.plan_image(600, 2).grid, (std::array<std::int64_t, 3>{1, 3, 840}));
}

TEST(Gemma4Processing, FramesAreImagesOfFewerTokens) {
  const ItemPlan plan = processor_of({}).plan_video(5, 640, 480);
  EXPECT_EQ(plan.grid, (std::array<std::int64_t, 3>{5, 21, 27}));
  EXPECT_EQ(plan.spec.out_rows, 5 * 63);
  EXPECT_EQ(plan.spec.num_seqs, 5);
}

TEST(Gemma4Processing, FramesAreTakenAtTheWantedRateUpToANumber) {
  const common::GridProcessor processor =
      processor_of({.video_preprocessor = R"({"num_frames": 4})"});
  using Frames = std::vector<std::int64_t>;
  EXPECT_EQ(processor.sample_frames(48, 24, 1), (Frames{0, 24}));
  EXPECT_EQ(processor.sample_frames(48, 24, 24), (Frames{0, 12, 24, 36}));
  EXPECT_EQ(processor.sample_frames(48, 0, 2), (Frames{0, 12, 24, 36})) << "24 frames per second";
  EXPECT_EQ(processor.sample_frames(3, 24, 0.001), Frames{0});
}

TEST(Gemma4Processing, RefusesWhatTheTowerDoesNotDo) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& file) {
    test::expect_error(code, message, [&] { (void)processor_of({.preprocessor = file}); });
  };
  expect_refused(ErrorCode::kUnsupported, "max_soft_tokens: expected 70, 140, 280, 560 or 1120",
                 R"({"max_soft_tokens": 300})");
  expect_refused(ErrorCode::kCorruptData, "pooling_kernel_size: 2 contradicts config.json",
                 R"({"pooling_kernel_size": 2})");
  expect_refused(ErrorCode::kUnsupported, "image_mean: only 0,0,0 is supported",
                 R"({"image_mean": [0.5, 0.5, 0.5]})");
  expect_refused(ErrorCode::kUnsupported, "do_rescale: only true is supported",
                 R"({"do_rescale": false})");
  Config config;
  config.position_embedding_size = 30;
  test::expect_error(ErrorCode::kInvalidArgument,
                     "would have 57 patches on a side, the model has positions for 30",
                     [&] { (void)processor_of({}, config).plan_image(640, 480); });
  test::expect_error(ErrorCode::kUnsupported, "no pixel values", [] {
    (void)processor_of({}).plan_grid(Modality::kImage, {1, 3, 3});
  });
}

TEST(Gemma4Processing, SaysWhatItAssumesAndWhereValuesComeFrom) {
  EXPECT_EQ(processor_of({}).assumptions(),
            "missing=model/preprocessor_config.json max_soft_tokens=280");
  EXPECT_EQ(processor_of({.preprocessor = R"({"max_soft_tokens": 70})"}).sources(),
            "image.file=\"preprocessor_config.json\" image.given=max_soft_tokens "
            "video.file=\"preprocessor_config.json\" video.given=max_soft_tokens "
            "video.class_default=num_frames");
}

/// Patches of all frames row by row: pixels with their channels. The data has frames of videos with
/// the zeros that fill them up to the most patches that a frame has.
std::vector<std::uint8_t> patches_of(const ItemPlan& plan,
                                     const std::vector<std::uint8_t>& pixels) {
  const std::int64_t side = plan.resized_width_px / plan.grid[2];
  std::vector<std::uint8_t> patches;
  for (std::int64_t row = 0; row < plan.grid[0] * plan.grid[1]; ++row) {
    for (std::int64_t column = 0; column < plan.grid[2]; ++column) {
      for (std::int64_t y = row * side; y < (row + 1) * side; ++y) {
        const auto line = pixels.begin() + (y * plan.resized_width_px + column * side) * 3;
        patches.insert(patches.end(), line, line + side * 3);
      }
    }
    const bool ends_frame = (row + 1) % plan.grid[1] == 0;
    if (plan.modality == Modality::kImage || !ends_frame) continue;
    const std::int64_t frames = row / plan.grid[1] + 1;
    patches.resize(static_cast<std::size_t>(frames * kFramePatches * side * side * 3));
  }
  return patches;
}

TEST(Gemma4Processing, BytesAreThoseOfTheReference) {
  const auto folders = test::golden_folders("gemma4", "golden.safetensors");
  if (folders.empty()) GTEST_SKIP() << "no folder gemma4; set FOVEA_GOLDEN_DIR";
  for (const std::string& folder : folders) {
    const checkpoint::HfConfig files = checkpoint::read_hf_config(folder);
    const common::GridProcessor processor(read_processing(files, parse_config(files), {}));
    test::expect_golden_folder_bytes(processor, folder, &patches_of);
  }
}

}  // namespace
}  // namespace fovea::gemma4
