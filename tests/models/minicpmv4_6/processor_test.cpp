// Views of MiniCPM-V 4.6: sizes worked out with the reference, and the bytes of its images.
#include "models/minicpmv4_6/processor.h"

#include <gtest/gtest.h>

#include <limits>

#include "models/config_files.h"
#include "models/minicpmv4_6/config.h"
#include "support/expect_error.h"
#include "support/golden.h"
#include "support/golden_bytes.h"
#include "support/property.h"

namespace fovea::minicpmv4_6 {
namespace {

using Sides = std::vector<std::array<std::int64_t, 2>>;  ///< height and width in patches

constexpr common::GridGeometry kGeometry{
    .patch_size = 14, .spatial_merge_size = 4, .temporal_patch_size = 1};

Processor processor_of(const test::ConfigTexts& texts) {
  return Processor(read_processing(test::config_files(texts), kGeometry, {}));
}

/// The view of the whole, and `count` slices.
Sides views(std::array<std::int64_t, 2> whole, std::size_t count = 0,
            std::array<std::int64_t, 2> slice = {}) {
  Sides sides(count, slice);
  sides.insert(sides.begin(), whole);
  return sides;
}

TEST(MiniCpmV46Processor, PlansImagesAsTheReference) {
  struct Case {
    std::int64_t width, height;
    Sides views;
  };
  const Processor processor = processor_of({});
  for (const Case& c :
       {Case{1240, 1754, views({40, 28}, 8, {28, 40})},
        Case{1920, 1080, views({24, 44}, 8, {32, 32})},
        Case{2600, 1900, views({28, 36}, 9, {28, 36})},
        Case{640, 480, views({28, 36}, 2, {40, 28})}, Case{2000, 90, views({8, 152})},
        Case{333, 77, views({16, 68})}, Case{40, 500, views({112, 8})}}) {
    SCOPED_TRACE(std::to_string(c.width) + "x" + std::to_string(c.height));
    const ItemPlan plan = processor.plan_image(c.width, c.height);
    Sides sides;
    std::int64_t patches = 0;
    for (const ItemPlan& view : processor.processing().views_of(plan)) {
      sides.push_back({view.grid[1], view.grid[2]});
      patches += view.grid[1] * view.grid[2];
    }
    EXPECT_EQ(sides, c.views);
    EXPECT_EQ(plan.spec.out_rows, patches / 16);
    EXPECT_EQ(plan.pixel_bytes, static_cast<std::size_t>(patches * 14 * 14 * 3));
    EXPECT_FALSE(plan.has_grid_thw);
  }
}

TEST(MiniCpmV46Processor, SlicesCanBeSwitchedOff) {
  const Processor processor = processor_of({.preprocessor = R"({"slice_mode": false})"});
  EXPECT_EQ(processor.processing().views_of(processor.plan_image(1920, 1080)).size(), 1u);
}

TEST(MiniCpmV46Processor, AFrameHasTheViewsOfAnImageAndIsAUnit) {
  const Processor processor = processor_of({});
  const ItemPlan image = processor.plan_image(640, 480);
  const ItemPlan video = processor.plan_video(3, 640, 480);
  EXPECT_EQ(video.spec.out_rows, 3 * image.spec.out_rows);
  EXPECT_EQ(video.spec.units[0].count, 3);
  EXPECT_EQ(video.unit_bytes[0], image.pixel_bytes);
}

TEST(MiniCpmV46Processor, FramesAreTakenOneASecondUpToANumber) {
  const Processor processor = processor_of({.video_preprocessor = R"({"max_num_frames": 3})"});
  using Frames = std::vector<std::int64_t>;
  EXPECT_EQ(processor.sample_frames(50, 20, 2), (Frames{0, 20, 40}));
  EXPECT_EQ(processor.sample_frames(1, 20, 2), Frames{0});
  // 4 seconds: tenths 0, 19 and 39
  EXPECT_EQ(processor.sample_frames(80, 20, 2), (Frames{0, 38, 78}));
}

TEST(MiniCpmV46Processor, NoViewHasFewerTokensThanItSays) {
  const Processor processor = processor_of({});
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  test::for_all(300, [&](std::mt19937_64& generator) {
    const std::int64_t width = test::uniform(generator, 1, 4000);
    const std::int64_t height = test::uniform(generator, 1, width);
    const bool lies = test::uniform(generator, 0, 1) == 0;
    const ItemPlan plan =
        lies ? processor.plan_image(width, height) : processor.plan_image(height, width);
    for (const ItemPlan& view : processor.processing().views_of(plan)) {
      least = std::min(least, view.spec.input_rows / 16);
    }
  });
  EXPECT_GE(least, processor.processing().least_view_tokens);
  test::expect_error(ErrorCode::kInvalidArgument, "is too thin",
                     [&] { (void)processor.plan_image(1 << 20, 1); });
}

TEST(MiniCpmV46Processor, RefusesWhatTheTowerDoesNotDo) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& file) {
    test::expect_error(code, message, [&] { (void)processor_of({.preprocessor = file}); });
  };
  expect_refused(ErrorCode::kCorruptData, "patch_size: 16 contradicts config.json",
                 R"({"patch_size": 16})");
  expect_refused(ErrorCode::kUnsupported, "downsample_mode: only 16x",
                 R"({"downsample_mode": "4x"})");
  expect_refused(ErrorCode::kUnsupported, "scale_resolution: expected at least 112, got 100",
                 R"({"scale_resolution": 100})");
  expect_refused(ErrorCode::kUnsupported, "resample: only 3", R"({"resample": 2})");
  const Processor stacked = processor_of({.video_preprocessor = R"({"stack_frames": 5})"});
  test::expect_error(ErrorCode::kUnsupported, "stack_frames: only 1 is supported",
                     [&] { (void)stacked.plan_video(2, 64, 64); });
  test::expect_error(ErrorCode::kUnsupported, "no pixel values", [] {
    (void)processor_of({}).plan_grid(Modality::kImage, {1, 4, 4});
  });
}

TEST(MiniCpmV46Processor, BytesAreThoseOfTheReference) {
  const auto folders = test::golden_folders("minicpmv4_6", "golden.safetensors");
  if (folders.empty()) GTEST_SKIP() << "no folder minicpmv4_6; set FOVEA_GOLDEN_DIR";
  for (const std::string& folder : folders) {
    const checkpoint::HfConfig files = checkpoint::read_hf_config(folder);
    const Processor processor(read_processing(files, parse_config(files).grid, {}));
    // The data has [3, patch_size, patches * patch_size]: a channel of all patches line by line.
    const auto ordered = [&](const ItemPlan& plan, const std::vector<std::uint8_t>& pixels) {
      const std::int64_t side = processor.processing().geometry.patch_size;
      std::vector<std::uint8_t> values;
      for (std::int64_t line = 0; line < 3 * side; ++line) {
        auto first = pixels.begin();  // of a view
        for (std::int64_t frame = 0; frame < plan.num_frames; ++frame) {
          for (const ItemPlan& view : processor.processing().views_of(plan)) {
            for (std::int64_t patch = 0; patch < view.spec.input_rows; ++patch) {
              const std::int64_t y = patch / view.grid[2] * side + line % side;
              const std::int64_t x = patch % view.grid[2] * side;
              for (std::int64_t i = 0; i < side; ++i) {
                values.push_back(first[(y * view.resized_width_px + x + i) * 3 + line / side]);
              }
            }
            first += static_cast<std::ptrdiff_t>(view.pixel_bytes);
          }
        }
      }
      return values;
    };
    test::expect_golden_folder_bytes(processor, folder, ordered);
  }
}

}  // namespace
}  // namespace fovea::minicpmv4_6
