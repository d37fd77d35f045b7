// Host side of GLM-5: canvases and contents worked out with the reference, sampling, and bytes.
#include "models/glm4v/canvas.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::glm4v {
namespace {

using common::Size2d;
using Indices = std::vector<std::int64_t>;

common::GridProcessor canvas_processor(const std::string& file, const MediaOptions& media = {}) {
  return common::GridProcessor(
      read_canvas_processing(test::config_files({.preprocessor = file, .video_preprocessor = file}),
                             {.patch_size = 14}, media));
}

CanvasRule rule(std::int64_t min_tokens, std::int64_t max_tokens) {
  constexpr std::int64_t kToken = 2 * 28 * 28;
  return {.range = {min_tokens * kToken, max_tokens * kToken}};
}

TEST(Glm5Canvas, SizesAreThoseOfTheReference) {
  struct Case {
    std::int64_t frames, height, width, most_tokens;
    Size2d canvas, content;
  };
  for (const Case& c :
       {Case{2, 480, 640, 8000, {504, 644}, {480, 640}},
        Case{2, 1080, 1920, 8000, {1092, 1932}, {1080, 1920}},
        Case{2, 20, 30, 8000, {112, 140}, {93, 140}},
        Case{2, 3000, 4000, 8000, {2156, 2884}, {2156, 2874}},
        Case{2, 1, 1, 8000, {112, 112}, {112, 112}}, Case{2, 77, 333, 8000, {84, 336}, {77, 333}},
        Case{2, 90, 2000, 40, {28, 644}, {28, 622}}, Case{2, 480, 640, 40, {140, 196}, {140, 186}},
        Case{5, 76, 100, 60, {84, 112}, {76, 100}}, Case{3, 300, 40, 60, {308, 56}, {300, 40}},
        Case{64, 1080, 1920, 240000, {1092, 1932}, {1080, 1920}}}) {
    SCOPED_TRACE(::testing::Message() << c.frames << " frames of " << c.width << "x" << c.height);
    const CanvasRule sizes = rule(16, c.most_tokens);
    const Size2d canvas = sizes.canvas(c.frames, c.height, c.width);
    EXPECT_EQ(canvas, c.canvas);
    EXPECT_EQ(sizes.content(c.frames, c.height, c.width, canvas), c.content);
  }
}

TEST(Glm5Canvas, RefusesWhatNoCanvasHolds) {
  test::expect_error(ErrorCode::kInvalidArgument, "has no area",
                     [] { (void)rule(16, 8000).canvas(2, 0, 5); });
  test::expect_error(ErrorCode::kInvalidArgument, "200 frames need at least 156800 pixels",
                     [] { (void)rule(16, 60).canvas(200, 100, 100); });
}

TEST(Glm5Canvas, LimitsAreThoseOfTheFilesOrOfTheUser) {
  const common::GridProcessor silent = canvas_processor(R"({"size": {"longest_edge": 1}})");
  EXPECT_EQ(silent.processing().limits.image.max_pixels, 8000 * 1568);
  EXPECT_EQ(silent.processing().limits.video.max_pixels, 240000 * 1568);
  EXPECT_EQ(silent.plan_image(4000, 3000).grid, (std::array<std::int64_t, 3>{1, 154, 206}));
  const std::string small = R"({"max_image_tokens": 40})";
  EXPECT_EQ(canvas_processor(small).plan_image(640, 480).grid,
            (std::array<std::int64_t, 3>{1, 10, 14}));
  EXPECT_EQ(canvas_processor(small, {.max_pixels = 8000 * 1568}).plan_image(640, 480).grid,
            (std::array<std::int64_t, 3>{1, 36, 46}));
  EXPECT_EQ(canvas_processor(R"({"patch_expand_factor": 2})").plan_image(640, 480).grid,
            (std::array<std::int64_t, 3>{1, 36, 48}));
}

TEST(Glm5Canvas, FramesStandAtTheUpperLeftOfBlack) {
  const common::GridProcessor processor = canvas_processor(R"({"max_image_tokens": 60})");
  const ItemPlan plan = processor.plan_video(6, 100, 76);
  ASSERT_EQ(plan.grid, (std::array<std::int64_t, 3>{3, 6, 8}));
  const std::vector<std::uint8_t> white(100 * 76 * 3, 255);
  std::vector<std::uint8_t> out(plan.pixel_bytes, 7);
  for (std::int64_t frame = 0; frame < 6; ++frame) {
    processor.fill_frame(plan, frame, {white.data(), 100, 76}, out);
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const std::size_t x = i / 3 % 112;
    const std::size_t y = i / 3 / 112 % 84;
    ASSERT_EQ(out[i], x < 100 && y < 76 ? 255 : 0) << x << ", " << y;
  }
}

TEST(Glm5Canvas, SamplesAtARateUpToANumberOfFrames) {
  const auto sample = [](const std::string& file, std::int64_t frames, double fps, double target) {
    return canvas_processor(file).sample_frames(frames, fps, target);
  };
  EXPECT_EQ(sample("{}", 100, 25, 2), (Indices{0, 13, 25, 38, 50, 63, 75, 88}));
  EXPECT_EQ(sample("{}", 30, 10, 2), (Indices{0, 5, 10, 15, 20, 25}));
  EXPECT_EQ(sample("{}", 5, 1, 3), (Indices{0, 1, 2, 3, 4, 4}));
  EXPECT_EQ(sample("{}", 7, 30, 2), (Indices{0, 0})) << "the reference takes none";
  EXPECT_EQ(sample(R"({"max_duration": 2})", 100, 25, 5),
            (Indices{0, 11, 22, 33, 44, 55, 66, 77, 88, 99}));
  EXPECT_EQ(sample(R"({"max_frames": 4})", 100, 25, 2), (Indices{0, 33, 66, 99}));
  const Indices many = sample("{}", 60000, 25, 2);
  EXPECT_EQ(many.size(), 2048u);
  EXPECT_EQ(std::accumulate(many.begin(), many.end(), std::int64_t{0}), 61437953);
  EXPECT_EQ(canvas_processor("{}").timestamps(std::vector<double>{0.5, 1.0, 1.54, 2}),
            (std::vector<double>{0.5, 1.54}));
}

}  // namespace
}  // namespace fovea::glm4v
