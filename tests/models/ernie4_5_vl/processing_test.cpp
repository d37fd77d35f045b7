// Host side of ERNIE-4.5-VL: sizes, sampling, and the time that is drawn on frames.
#include <gtest/gtest.h>

#include "models/config_files.h"
#include "models/ernie4_5_vl/model.h"
#include "support/expect_error.h"

namespace fovea::ernie4_5_vl {
namespace {

common::GridProcessor processor_of(const std::string& image, const std::string& video = {}) {
  return common::GridProcessor(read_processing(
      test::config_files({.preprocessor = image, .video_preprocessor = video}), Config{}.grid, {}));
}

TEST(Ernie4_5VlProcessing, PlansImagesAsTheReference) {
  struct Case {
    std::int64_t width, height, grid_height, grid_width;
  };
  const common::GridProcessor processor = processor_of(R"({"temporal_patch_size": 1})");
  for (const Case& c : {Case{1240, 1754, 126, 88}, Case{1920, 1080, 78, 138},
                        Case{2000, 90, 6, 142}, Case{2600, 1900, 134, 182}, Case{333, 77, 6, 24},
                        Case{40, 500, 36, 2}, Case{640, 480, 34, 46}}) {
    SCOPED_TRACE(std::to_string(c.width) + "x" + std::to_string(c.height));
    const ItemPlan plan = processor.plan_image(c.width, c.height);
    EXPECT_EQ(plan.grid, (std::array<std::int64_t, 3>{1, c.grid_height, c.grid_width}));
    EXPECT_EQ(plan.spec.out_rows, c.grid_height * c.grid_width / 4);
  }
}

TEST(Ernie4_5VlProcessing, VideosAreRefusedWhereTheTimeIsDrawnOnFrames) {
  const auto expect_refused = [](const std::string& message, const std::string& image,
                                 const std::string& video) {
    const common::GridProcessor processor = processor_of(image, video);
    EXPECT_EQ(processor.plan_image(56, 56).spec.out_rows, 4) << "images are not";
    test::expect_error(ErrorCode::kUnsupported, message,
                       [&] { (void)processor.plan_video(4, 56, 56); });
    test::expect_error(ErrorCode::kUnsupported, message, [&] {
      (void)processor.plan_grid(Modality::kVideo, {2, 4, 4});
    });
  };
  expect_refused("video_preprocessor_config.json.draw_on_frames: true is not supported: the time",
                 "{}", R"({"draw_on_frames": true, "font": "Roboto-Regular.ttf"})");
  expect_refused("draw_on_frames: true, which is the default, is not supported", "{}", "{}");
  expect_refused("preprocessor_config.json.draw_on_frames: true, which is the default",
                 R"({"temporal_patch_size": 1})", "");
  expect_refused("model/video_preprocessor_config.json.draw_on_frames: true", "", "");
}

TEST(Ernie4_5VlProcessing, VideosHaveLimitsOfTheirOwnAndWholePairs) {
  const common::GridProcessor processor = processor_of("{}", R"({"draw_on_frames": false})");
  const ItemPlan plan = processor.plan_video(5, 1920, 1080);
  EXPECT_EQ(plan.grid, (std::array<std::int64_t, 3>{6, 50, 92})) << "the last frame counts twice";
  EXPECT_EQ(plan.spec.out_rows, 3 * 50 * 92 / 4);
  EXPECT_EQ(processor.plan_video(1, 1920, 1080).grid[0], 2);
}

TEST(Ernie4_5VlProcessing, SamplesAsTheReference) {
  using Indices = std::vector<std::int64_t>;
  const common::GridProcessor processor = processor_of("{}", R"({"draw_on_frames": false})");
  EXPECT_EQ(processor.sample_frames(100, 25, 2),
            (Indices{0, 6, 12, 18, 25, 31, 37, 43, 50, 56, 62, 68, 75, 81, 87, 93}))
      << "at least 16";
  EXPECT_EQ(processor.sample_frames(5, 25, 2), (Indices{0, 1, 2, 3, 4}));
  EXPECT_EQ(processor.sample_frames(100000, 25, 2).size(), 180u) << "at most";
  const common::GridProcessor few =
      processor_of("{}", R"({"draw_on_frames": false, "min_frames": 1})");
  EXPECT_EQ(few.sample_frames(61, 24, 2), (Indices{0, 12, 24, 36, 48, 60})) << "5.08 of them";
}

TEST(Ernie4_5VlProcessing, RefusesFilesThatContradictTheTower) {
  test::expect_error(ErrorCode::kCorruptData, "temporal_patch_size: 2 contradicts",
                     [] { (void)processor_of(R"({"temporal_patch_size": 2})"); });
  test::expect_error(ErrorCode::kCorruptData, "temporal_patch_size: 1 contradicts", [] {
    (void)processor_of("{}", R"({"draw_on_frames": false, "temporal_patch_size": 1})");
  });
  test::expect_error(ErrorCode::kCorruptData, "min_frames", [] {
    (void)processor_of("{}", R"({"draw_on_frames": false, "min_frames": 0})");
  });
}

}  // namespace
}  // namespace fovea::ernie4_5_vl
