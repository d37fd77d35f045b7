// Sizes and sampling of GLM-4.1V and GLM-4.6V: examples worked out with the reference.
#include "models/glm4v/processing.h"

#include <gtest/gtest.h>

#include <numeric>

#include "models/config_files.h"

namespace fovea::glm4v {
namespace {

using Indices = std::vector<std::int64_t>;
using Grid = std::array<std::int64_t, 3>;

blocks::GridProcessor processor_of(const test::ConfigTexts& texts) {
  return blocks::GridProcessor(read_processing(test::config_files(texts), {.patch_size = 14}, {}));
}

const std::string kConfig = R"({"architectures": ["Glm4vForConditionalGeneration"]})";
const std::string kImages = R"({"size": {"shortest_edge": 12544, "longest_edge": 9633792}})";
const std::string kVideos = R"({"size": {"shortest_edge": 12544, "longest_edge": 47040000}})";

blocks::GridProcessor published() {
  return processor_of({.config = kConfig, .preprocessor = kImages, .video_preprocessor = kVideos});
}

/// A processor whose video processor is of `type`, as its file says.
blocks::GridProcessor sampler(const std::string& type, const std::string& more = "") {
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
  const blocks::GridProcessor processor = published();
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
  const blocks::GridProcessor processor = published();
  EXPECT_EQ(processor.plan_video(16, 1280, 720).grid, (Grid{8, 52, 92}));
  EXPECT_EQ(processor.plan_video(64, 1920, 1080).grid, (Grid{32, 44, 80}));
  EXPECT_EQ(processor.plan_video(600, 1920, 1080).grid, (Grid{300, 14, 26}));
}

TEST(Glm4vProcessing, WithoutProcessorFilesLimitsAreThoseOfTheReferencesClasses) {
  const blocks::GridProcessor processor = processor_of({.config = kConfig});
  EXPECT_EQ(processor.processing().limits.image.max_pixels, 11760000);
  EXPECT_EQ(processor.processing().limits.video.max_pixels, 47040000);
  EXPECT_EQ(processor.processing().limits.image.min_pixels, 12544);
}

TEST(Glm4vProcessing, SamplesByTimeAsTheReference) {
  const blocks::GridProcessor processor = sampler("Glm4vVideoProcessor");
  EXPECT_EQ(processor.sample_frames(100, 25, 2), (Indices{0, 13, 25, 38, 50, 63, 75, 88, 99, 99}));
  EXPECT_EQ(processor.sample_frames(30, 10, 2), (Indices{0, 5, 10, 15, 20, 25, 29, 29}));
  EXPECT_EQ(processor.sample_frames(100, 29.97, 3),
            (Indices{0, 10, 20, 30, 40, 50, 60, 70, 80, 90, 99, 99}));
  EXPECT_EQ(processor.sample_frames(7, 30, 2), (Indices{0, 6}));
  EXPECT_EQ(processor.sample_frames(1, 30, 2), (Indices{0, 0})) << "a whole temporal patch";
  EXPECT_EQ(processor.sample_frames(100, 0, 2), processor.sample_frames(100, 24, 2));
}

TEST(Glm4vProcessing, SpreadsTheFramesOfALongVideo) {
  const blocks::GridProcessor processor = sampler("Glm4vVideoProcessor");
  const Indices spread = processor.sample_frames(60000, 25, 2);
  EXPECT_EQ(spread.size(), 600u);
  EXPECT_EQ(std::accumulate(spread.begin(), spread.end(), std::int64_t{0}), 18007773);
  EXPECT_EQ(processor.sample_frames(500, 1, 2).size(), 500u) << "no more frames than there are";
  EXPECT_EQ(
      sampler("Glm4vVideoProcessor", ", \"max_duration\": 100").sample_frames(60000, 25, 2).size(),
      200u);
}

TEST(Glm4vProcessing, Glm46VSamplesByTheLengthOfTheVideo) {
  const blocks::GridProcessor processor = sampler("Glm46VVideoProcessor");
  EXPECT_EQ(processor.sample_frames(30, 10, 2),
            (Indices{0,  1,  2,  3,  5,  6,  7,  8,  10, 11, 12, 13,
                     15, 16, 17, 18, 20, 21, 22, 23, 25, 26, 27, 29}));
  EXPECT_EQ(processor.sample_frames(7, 30, 2), (Indices{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(processor.sample_frames(1, 30, 2), (Indices{0, 0}));
  struct Case {
    std::int64_t frames;
    double fps;
    std::size_t count;
    std::int64_t sum;
  };
  for (const Case& c : {Case{100, 25, 30, 1426}, Case{100, 29.97, 24, 1129},
                        Case{9000, 25, 362, 1628785}, Case{60000, 25, 640, 19199361}}) {
    const Indices indices = processor.sample_frames(c.frames, c.fps, 2);
    EXPECT_EQ(indices.size(), c.count) << c.frames;
    EXPECT_EQ(std::accumulate(indices.begin(), indices.end(), std::int64_t{0}), c.sum);
  }
  EXPECT_EQ(processor.sample_frames(100, 25, 2), processor.sample_frames(100, 25, 7))
      << "whatever rate is wanted";
}

TEST(Glm4vProcessing, WithoutAVideoProcessorTheArchitectureNamesTheSampler) {
  const blocks::GridProcessor processor =
      processor_of({.config = R"({"architectures": ["Glm46VForConditionalGeneration"]})"});
  EXPECT_EQ(processor.sample_frames(100, 25, 2).size(), 30u);
}

}  // namespace
}  // namespace fovea::glm4v
