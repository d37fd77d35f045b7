// Sizes and sampling of GLM-4.1V and GLM-4.6V: examples worked out with the reference.
#include "models/glm4v/config.h"

#include <gtest/gtest.h>

#include <numeric>

#include "models/config_files.h"

namespace fovea::glm4v {
namespace {

using Indices = std::vector<std::int64_t>;
using Grid = std::array<std::int64_t, 3>;

common::GridProcessor processor_of(const test::ConfigTexts& texts) {
  return common::GridProcessor(read_processing(test::config_files(texts), {.patch_size = 14}, {}));
}

const std::string kConfig = R"({"architectures": ["Glm4vForConditionalGeneration"]})";
const std::string kImages = R"({"size": {"shortest_edge": 12544, "longest_edge": 9633792}})";
const std::string kVideos = R"({"size": {"shortest_edge": 12544, "longest_edge": 47040000}})";

common::GridProcessor published() {
  return processor_of({.config = kConfig, .preprocessor = kImages, .video_preprocessor = kVideos});
}

/// A processor whose video processor is of `type`, as its file says.
common::GridProcessor sampler(const std::string& type, const std::string& more = "") {
  return processor_of(
      {.config = kConfig,
       .video_preprocessor = "{\"video_processor_type\": \"" + type + "\"" + more + "}"});
}

TEST(Glm4vProcessing, PlansImagesAsTheReference) {
  struct Case {
    std::int64_t height, width;
    Grid grid;
    std::int64_t tokens;
  };
  const common::GridProcessor processor = published();
  for (const Case& c : {Case{336, 336, {1, 24, 24}, 144}, Case{480, 640, {1, 34, 46}, 391},
                        Case{1080, 1920, {1, 78, 138}, 2691}, Case{20, 30, {1, 6, 8}, 12},
                        Case{50, 60, {1, 6, 8}, 12}, Case{3000, 4000, {1, 134, 180}, 6030}}) {
    const ItemPlan plan = processor.plan_image(c.width, c.height);
    EXPECT_EQ(plan.grid, c.grid) << c.width << "x" << c.height;
    EXPECT_EQ(plan.spec.out_rows, c.tokens);
    EXPECT_EQ(plan.num_frames, 1) << "the second of the equal frames is not kept";
  }
}

TEST(Glm4vProcessing, LimitsOfAVideoCountAllItsFrames) {
  const common::GridProcessor processor = published();
  EXPECT_EQ(processor.plan_video(16, 1280, 720).grid, (Grid{8, 52, 92}));
  EXPECT_EQ(processor.plan_video(64, 1920, 1080).grid, (Grid{32, 44, 80}));
  EXPECT_EQ(processor.plan_video(600, 1920, 1080).grid, (Grid{300, 14, 26}));
}

TEST(Glm4vProcessing, WithoutProcessorFilesLimitsAreThoseOfTheReferencesClasses) {
  const common::GridProcessor processor = processor_of({.config = kConfig});
  EXPECT_EQ(processor.processing().limits.image.max_pixels, 11760000);
  EXPECT_EQ(processor.processing().limits.video.max_pixels, 47040000);
  EXPECT_EQ(processor.processing().limits.image.min_pixels, 12544);
}

TEST(Glm4vProcessing, WhatAFileDoesNotSayIsThatOfTheReferencesClasses) {
  // Limits beside `size` are nothing to these classes.
  for (const char* text : {"{}", R"({"min_pixels": 8000, "max_pixels": 80000})"}) {
    const common::GridProcessor processor =
        processor_of({.config = kConfig, .preprocessor = text, .video_preprocessor = text});
    EXPECT_EQ(processor.processing().scaling, common::kClipScaling);
    EXPECT_EQ(processor.plan_image(640, 480).grid, (Grid{1, 34, 46}));
    EXPECT_EQ(processor.plan_image(4000, 3000).grid, (Grid{1, 150, 200}));
    EXPECT_EQ(processor.plan_video(2, 48, 64).grid, (Grid{1, 8, 6}));
    EXPECT_EQ(processor.plan_video(4, 640, 480).grid, (Grid{2, 34, 46}));
    EXPECT_EQ(processor.plan_video(16, 1280, 720).grid, (Grid{8, 52, 92}));
  }
}

TEST(Glm4vProcessing, SamplesByTimeAsTheReference) {
  const common::GridProcessor processor = sampler("Glm4vVideoProcessor");
  EXPECT_EQ(processor.sample_frames(100, 25, 2), (Indices{0, 13, 25, 38, 50, 63, 75, 88}));
  EXPECT_EQ(processor.sample_frames(30, 10, 2), (Indices{0, 5, 10, 15, 20, 25}));
  EXPECT_EQ(processor.timestamps(std::vector<double>{0, 0.5, 1.04, 1.52, 2.96, 3.0}),
            (std::vector<double>{0, 1, 2}))
      << "whole seconds of the first frame of a temporal patch";
  EXPECT_EQ(processor.sample_frames(100, 29.97, 2), (Indices{0, 15, 30, 45, 60, 75}));
  EXPECT_EQ(processor.sample_frames(90, 25.5, 2), (Indices{0, 13, 26, 39, 51, 64, 77, 77}));
  EXPECT_EQ(processor.sample_frames(7, 30, 2), (Indices{0, 0}));
  EXPECT_EQ(processor.sample_frames(1, 30, 2), (Indices{0, 0})) << "a whole temporal patch";
}

TEST(Glm4vProcessing, AVideoOfUnknownRateHasWholeSecondsOf24Frames) {
  EXPECT_EQ(sampler("Glm4vVideoProcessor").sample_frames(121, 0, 2),
            (Indices{0, 12, 24, 36, 48, 60, 72, 84, 96, 108, 120, 120}));
  EXPECT_EQ(
      sampler("Glm46VVideoProcessor").sample_frames(121, 0, 2),
      (Indices{0,  3,  6,  10, 13, 17, 20, 24, 27, 30, 34, 37, 41,  44,  48,  51,  54,  58,
               61, 65, 68, 72, 75, 78, 82, 85, 89, 92, 96, 99, 102, 106, 109, 113, 116, 120}));
}

TEST(Glm4vProcessing, SpreadsTheFramesOfALongVideo) {
  const common::GridProcessor processor = sampler("Glm4vVideoProcessor");
  const Indices spread = processor.sample_frames(60000, 25, 2);
  EXPECT_EQ(spread.size(), 600u);
  EXPECT_EQ(std::accumulate(spread.begin(), spread.end(), std::int64_t{0}), 18000298);
  EXPECT_EQ(processor.sample_frames(500, 1, 2).size(), 500u) << "no more frames than there are";
  EXPECT_EQ(
      sampler("Glm4vVideoProcessor", ", \"max_duration\": 100").sample_frames(60000, 25, 2).size(),
      200u);
}

TEST(Glm4vProcessing, Glm46VSamplesByTheLengthOfTheVideo) {
  const common::GridProcessor processor = sampler("Glm46VVideoProcessor");
  EXPECT_EQ(processor.sample_frames(30, 10, 2),
            (Indices{0, 2, 4, 5, 7, 9, 10, 12, 14, 15, 17, 19, 20, 22, 24, 25, 27, 29}));
  EXPECT_EQ(processor.sample_frames(7, 30, 2), (Indices{0, 0}));
  EXPECT_EQ(processor.sample_frames(1, 30, 2), (Indices{0, 0})) << "the reference takes none";
  struct Case {
    std::int64_t frames;
    double fps;
    std::size_t count;
    std::int64_t sum;
  };
  for (const Case& c : {Case{100, 25, 24, 1160}, Case{100, 29.97, 20, 891},
                        Case{9000, 25, 360, 1615500}, Case{60000, 25, 640, 19199361}}) {
    const Indices indices = processor.sample_frames(c.frames, c.fps, 2);
    EXPECT_EQ(indices.size(), c.count) << c.frames;
    EXPECT_EQ(std::accumulate(indices.begin(), indices.end(), std::int64_t{0}), c.sum);
  }
  EXPECT_EQ(processor.sample_frames(100, 25, 2), processor.sample_frames(100, 25, 7))
      << "whatever rate is wanted";
}

TEST(Glm4vProcessing, WithoutAVideoProcessorTheArchitectureNamesTheSampler) {
  const common::GridProcessor processor =
      processor_of({.config = R"({"architectures": ["Glm46VForConditionalGeneration"]})"});
  EXPECT_EQ(processor.sample_frames(100, 25, 2).size(), 24u);
  EXPECT_EQ(processor_of({.config = R"({"architectures": ["GlmOcrForConditionalGeneration"]})"})
                .sample_frames(100, 25, 2)
                .size(),
            24u);
}

}  // namespace
}  // namespace fovea::glm4v
