// Sizes and sampling with limits for each frame: examples worked out with the reference.
#include "models/common/grid/processor_file.h"

#include <gtest/gtest.h>

#include "models/config_files.h"

namespace fovea::common {
namespace {

/// @param size of the image processor; also serves videos, as in the published checkpoints.
GridProcessor processor_of(const std::string& size, const std::string& video = "") {
  const std::string image = size.empty() ? "" : "{\"size\": " + size + "}";
  return GridProcessor(read_frame_processing(
      test::config_files({.preprocessor = image, .video_preprocessor = video}), {.patch_size = 14},
      {}));
}

const std::string kPublishedSize = R"({"shortest_edge": 3136, "longest_edge": 12845056})";

using Grid = std::array<std::int64_t, 3>;

TEST(FrameProcessing, PlansImagesAsTheReference) {
  struct Case {
    std::int64_t height, width;
    Grid grid;
    std::int64_t tokens;
  };
  const GridProcessor processor = processor_of(kPublishedSize);
  for (const Case& c :
       {Case{336, 336, {1, 24, 24}, 144}, Case{480, 640, {1, 34, 46}, 391},
        Case{720, 1280, {1, 52, 92}, 1196}, Case{1080, 1920, {1, 78, 138}, 2691},
        Case{70, 98, {1, 4, 8}, 8}, Case{42, 42, {1, 4, 4}, 4}, Case{10, 10, {1, 4, 4}, 4},
        Case{4000, 6000, {1, 208, 312}, 16224}, Case{50, 5000, {1, 4, 358}, 358}}) {
    const ItemPlan plan = processor.plan_image(c.width, c.height);
    EXPECT_EQ(plan.grid, c.grid) << c.width << "x" << c.height;
    EXPECT_EQ(plan.spec.out_rows, c.tokens);
  }
}

TEST(FrameProcessing, WithoutAProcessorFileLimitsAreThoseOfTheReferencesClass) {
  EXPECT_EQ(processor_of("").plan_image(1920, 1080).grid, (Grid{1, 52, 94}));
}

TEST(FrameProcessing, WhatAFileDoesNotSayIsThatOfTheReferencesClass) {
  const auto read = [](const char* image, const char* video) {
    return read_frame_processing(
        test::config_files({.preprocessor = image, .video_preprocessor = video}),
        {.patch_size = 14}, {});
  };
  const GridProcessing p = read("{}", "{}");
  EXPECT_EQ(p.scaling, kClipScaling);
  EXPECT_EQ(p.video_refusal, "");
  EXPECT_EQ(p.limits.image.min_pixels, 3136);
  EXPECT_EQ(p.limits.image.max_pixels, 1003520);
  const GridProcessor processor(p);
  EXPECT_EQ(processor.plan_video(2, 48, 64).grid, (Grid{1, 28, 20}));
  EXPECT_EQ(processor.plan_video(4, 640, 480).grid, (Grid{2, 34, 46}));
  EXPECT_EQ(processor.plan_video(16, 1280, 720).grid, (Grid{8, 40, 72}));
  const GridProcessor beside(read("{}", R"({"min_pixels": 8000, "max_pixels": 80000})"));
  EXPECT_EQ(beside.plan_video(4, 640, 480).grid, (Grid{2, 16, 22}));
  EXPECT_EQ(beside.plan_video(16, 1280, 720).grid, (Grid{8, 14, 26}));
}

TEST(FrameProcessing, LimitsOfAVideoHoldForEachFrame) {
  const GridProcessor own = processor_of(kPublishedSize, R"({"size":
      {"shortest_edge": 100352, "longest_edge": 602112}})");
  EXPECT_EQ(own.plan_video(16, 1280, 720).grid, (Grid{8, 40, 72}));
  EXPECT_EQ(own.plan_video(16, 640, 360).grid, (Grid{8, 26, 46}));
  EXPECT_EQ(processor_of(kPublishedSize).plan_video(16, 1280, 720).grid, (Grid{8, 52, 92}))
      << "the limits of images serve where the checkpoint has no others";
}

TEST(FrameProcessing, CapsPixelsOfAWholeVideoWhenAsked) {
  // 90 % of 1000 tokens of 28 x 28 pixels, for 16 frames two at a time: 88200 pixels a frame.
  const GridProcessor processor =
      processor_of(kPublishedSize, R"({"cap_pixels_per_frame": true, "max_video_tokens": 1000,
                          "size": {"shortest_edge": 3136, "longest_edge": 602112}})");
  const ItemPlan plan = processor.plan_video(16, 1280, 720);
  EXPECT_LE(plan.resized_height_px * plan.resized_width_px, 88200);
  EXPECT_GT(plan.resized_height_px * plan.resized_width_px, 70000);
}

TEST(FrameProcessing, SamplesFramesAsTheReference) {
  using Frames = std::vector<std::int64_t>;
  const GridProcessor processor = processor_of("");
  EXPECT_EQ(processor.sample_frames(100, 25, 2), (Frames{0, 12, 25, 37, 50, 62, 75, 87}));
  EXPECT_EQ(processor.sample_frames(30, 10, 2), (Frames{0, 5, 10, 15, 20, 25}));
  EXPECT_EQ(processor.sample_frames(7, 30, 2), (Frames{0, 1, 3, 5}));
  EXPECT_EQ(processor.sample_frames(3, 30, 2), (Frames{0, 1})) << "whole temporal patches";
  EXPECT_EQ(processor.sample_frames(1, 30, 2), Frames{0});
  EXPECT_EQ(processor.sample_frames(100000, 25, 2).size(), 768u);
  EXPECT_EQ(processor.sample_frames(100, 0, 2), processor.sample_frames(100, 24, 2));
}

TEST(FrameProcessing, RoundsIndicesOfLongVideosAsTheReference) {
  struct Case {
    std::int64_t frames;
    double video_fps, target_fps;
    std::size_t place;
    std::int64_t index;
  };
  const GridProcessor processor = processor_of("");
  for (const Case& c : {Case{31687, 50, 3, 521, 21496}, Case{34951, 23.976, 3, 713, 32448},
                        Case{58879, 5, 0.5, 257, 19703}, Case{58879, 5, 0.5, 514, 39406},
                        Case{56963, 29.97, 2, 469, 34785}}) {
    EXPECT_EQ(processor.sample_frames(c.frames, c.video_fps, c.target_fps)[c.place], c.index);
  }
  EXPECT_EQ(processor.sample_frames(614, 10, 2).back(), 608)
      << "the reference goes on to frame 614, which there is not";
}

}  // namespace
}  // namespace fovea::common
