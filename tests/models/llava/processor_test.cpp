// From images and frames to views: canvases and rows as the reference has them, and what files may
// say.
#include "models/llava/processor.h"

#include <gtest/gtest.h>

#include "core/check.h"
#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::llava {
namespace {

constexpr const char* kNextPinpoints =
    "[[336, 672], [672, 336], [672, 672], [1008, 336], "
    "[336, 1008]]";

std::string onevision_pinpoints() {
  std::string list;
  for (int rows = 1; rows <= 6; ++rows) {
    for (int cols = 1; cols <= 6; ++cols) {
      list += cat(list.empty() ? "[" : ", ", "[", 384 * rows, ", ", 384 * cols, "]");
    }
  }
  return list + "]";
}

Processing processing_of(Format format, const std::string& file, const std::string& pinpoints = "",
                         const std::string& video = "") {
  Config config{.format = format};
  if (format == Format::kOnevision) {
    config.kind = Tower::kSiglip;
    config.max_canvas_views = 9;
  }
  config.tower.view = {.side_px = format == Format::kOnevision ? 384 : 336, .patch_px = 14};
  const std::string list = !pinpoints.empty()        ? pinpoints
                           : format == Format::kNext ? kNextPinpoints
                                                     : onevision_pinpoints();
  return read_processing(test::config_files({.config = "{\"image_grid_pinpoints\": " + list + "}",
                                             .preprocessor = file,
                                             .video_preprocessor = video}),
                         config, {});
}

struct Case {
  std::int64_t width, height, cols, rows, out_rows;
};

/// @param tokens of a view.
void expect_plans(const Processor& processor, std::int64_t tokens,
                  std::initializer_list<Case> cases) {
  for (const Case& c : cases) {
    SCOPED_TRACE(::testing::Message() << c.width << "x" << c.height);
    const ItemPlan plan = processor.plan_image(c.width, c.height);
    EXPECT_EQ(plan.grid, (std::array<std::int64_t, 3>{1, c.rows, c.cols}));
    EXPECT_EQ(plan.spec.path_tokens[0], (1 + c.cols * c.rows) * tokens);
    EXPECT_EQ(plan.spec.out_rows, c.out_rows);
  }
}

TEST(LlavaProcessor, NextPutsImagesOnCanvasesAsTheReference) {
  expect_plans(Processor(processing_of(Format::kNext, "{}")), 576,
               {{1240, 1754, 2, 2, 2256},
                {1920, 1080, 2, 2, 1948},
                {2000, 90, 3, 1, 868},
                {2600, 1900, 2, 2, 2340},
                {333, 77, 2, 1, 1164},
                {40, 500, 1, 2, 816},
                {640, 480, 2, 2, 2340},
                {1, 1, 2, 1, 1176},
                {5000, 3, 2, 1, 576},
                {672, 673, 2, 2, 2928}});
}

TEST(LlavaProcessor, OnevisionShrinksLargeCanvasesAsTheReference) {
  const Processor processor(processing_of(Format::kOnevision, "{}"));
  expect_plans(processor, 729,
               {{1240, 1754, 4, 5, 7353},
                {1920, 1080, 5, 3, 7269},
                {2000, 90, 6, 1, 1870},
                {2600, 1900, 6, 5, 7284},
                {333, 77, 1, 1, 925},
                {40, 500, 1, 2, 1053},
                {640, 480, 2, 2, 2929},
                {1000, 1000, 3, 3, 7371}});
  EXPECT_EQ(processor.plan_image(1920, 1080).spec.units[0].count, 1) << "shrunk";
  EXPECT_EQ(processor.plan_image(640, 480).spec.units[0].count, 5);
}

TEST(LlavaProcessor, LlavaCutsOutTheCentre) {
  const Processor processor(
      processing_of(Format::kLlava, R"({"size": {"shortest_edge": 336}, "crop_size": {"height": 336,
                          "width": 336}, "do_center_crop": true})"));
  const ItemPlan plan = processor.plan_image(1920, 1080);
  EXPECT_EQ(plan.spec.out_rows, 576);
  EXPECT_EQ(plan.target_width_px, 597);
  EXPECT_EQ(plan.target_height_px, 336);
  test::expect_error(ErrorCode::kInvalidArgument,
                     "image of 65535x1 pixels: expected at most 134217728 pixels before",
                     [&] { (void)processor.plan_image(65535, 1); });
}

TEST(LlavaProcessor, LlavaDoesNotKeepTheRatioWhereTheFileSaysSo) {
  const Processing p = processing_of(Format::kLlava, R"({"size": {"height": 336, "width": 336}})");
  EXPECT_EQ(p.shortest_edge, 0);
  EXPECT_EQ(processing_of(Format::kLlava, "").shortest_edge, 336) << "without a file, as CLIP";
  EXPECT_EQ(processing_of(Format::kLlava, "{}").shortest_edge, 336);
  EXPECT_EQ(processing_of(Format::kLlava, R"({"size": 336})").shortest_edge, 336)
      << "of CLIP a number is the shorter side";
}

TEST(LlavaProcessor, RefusesFilesThatContradictTheTower) {
  const auto expect_refused = [](ErrorCode code, const std::string& message, Format format,
                                 const std::string& file, const std::string& pinpoints = "") {
    test::expect_error(code, message, [&] { (void)processing_of(format, file, pinpoints); });
  };
  constexpr auto kUnsupported = ErrorCode::kUnsupported;
  expect_refused(kUnsupported, "size.shortest_edge: 224 contradicts config.json", Format::kNext,
                 R"({"size": {"shortest_edge": 224}})");
  expect_refused(kUnsupported, "crop_size.height: 224 contradicts config.json", Format::kNext,
                 R"({"crop_size": {"height": 224, "width": 336}})");
  expect_refused(ErrorCode::kCorruptData, "image_grid_pinpoints: contradicts", Format::kNext,
                 R"({"image_grid_pinpoints": [[336, 672]]})");
  expect_refused(kUnsupported, "is less than the 336 of config.json", Format::kLlava,
                 R"({"size": {"shortest_edge": 224}})");
  expect_refused(kUnsupported, "do_center_crop: only true is supported", Format::kLlava,
                 R"({"size": {"shortest_edge": 336}, "do_center_crop": false})");
  expect_refused(kUnsupported, "do_pad: only false is supported", Format::kLlava,
                 R"({"do_pad": true})");
}

TEST(LlavaProcessor, VideosAreThoseOfOnevision) {
  constexpr const char* kHalf = R"({"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]})";
  const Processor processor(processing_of(Format::kOnevision, kHalf, "", kHalf));
  const ItemPlan plan = processor.plan_video(6, 100, 76);
  EXPECT_EQ(plan.grid, (std::array<std::int64_t, 3>{6, 1, 1}));
  EXPECT_EQ(plan.spec.path_tokens[0], 6 * 729);
  EXPECT_EQ(plan.spec.out_rows, 6 * 196 + 1) << "ceil(27 / 2) a side, and one newline";
  EXPECT_EQ(processor.sample_frames(300, 30, 2).size(), 20U);
  EXPECT_EQ(processor.sample_frames(3000, 30, 2).size(), 32U);
  test::expect_error(ErrorCode::kUnsupported, "video", [] {
    (void)Processor(processing_of(Format::kNext, "{}")).plan_video(6, 100, 76);
  });
  test::expect_error(ErrorCode::kUnsupported,
                     "videos with another image_mean, image_std, size than images", [&] {
                       (void)Processor(processing_of(Format::kOnevision, kHalf, "",
                                                     R"({"size": {"height": 224, "width": 224}})"))
                           .plan_video(6, 100, 76);
                     });
}

TEST(LlavaProcessor, AViewOfACanvasHasTheImageAmidBlack) {
  Config config{.format = Format::kNext};
  config.tower.view = {.side_px = 4, .patch_px = 1};
  const Processor processor(read_processing(
      test::config_files({.config = R"({"image_grid_pinpoints": [[8, 4]]})"}), config, {}));
  const std::vector<std::uint8_t> rgb(4 * 4 * 3, 200);
  const ItemPlan plan = processor.plan_image(4, 4);
  ASSERT_EQ(plan.pixel_bytes, 3U * 48);
  std::vector<std::uint8_t> pixels(plan.pixel_bytes);
  processor.fill_frame(plan, 0, {rgb.data(), 4, 4}, pixels);
  const auto expect_bytes = [&](std::size_t first, std::size_t count, std::uint8_t value) {
    for (std::size_t i = first; i < first + count; ++i) EXPECT_EQ(pixels[i], value) << i;
  };
  expect_bytes(0, 48, 200);   // the whole image
  expect_bytes(48, 24, 0);    // two lines of padding
  expect_bytes(72, 48, 200);  // the image, half of it in each view
  expect_bytes(120, 24, 0);
}

}  // namespace
}  // namespace fovea::llava
