// Sizes, sampling and bytes of Qwen3-VL: the worked examples of the reference and golden pixels.
#include "models/qwen3_vl/config.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"
#include "support/golden.h"

namespace fovea::qwen3_vl {
namespace {

common::GridProcessor processor_of(const test::ConfigTexts& texts = {}) {
  return common::GridProcessor(read_processing(test::config_files(texts), {}, {}));
}

TEST(Qwen3VlProcessing, PlansImagesAsTheWorkedExamples) {
  struct Case {
    std::int64_t height, width, grid_h, grid_w, tokens;
  };
  for (const Case& c :
       {Case{336, 336, 20, 20, 100}, Case{480, 640, 30, 40, 300}, Case{720, 1280, 44, 80, 880},
        Case{1080, 1920, 68, 120, 2040}, Case{100, 100, 16, 16, 64}, Case{80, 112, 14, 20, 70},
        Case{4000, 6000, 208, 312, 16224}}) {
    const ItemPlan plan = processor_of().plan_image(c.width, c.height);
    EXPECT_EQ(plan.grid, (std::array<std::int64_t, 3>{1, c.grid_h, c.grid_w}));
    EXPECT_EQ(plan.spec.input_rows, c.grid_h * c.grid_w);
    EXPECT_EQ(plan.spec.out_rows, c.tokens);
    EXPECT_EQ(plan.spec.path_tokens[0], c.tokens);
    EXPECT_EQ(plan.spec.num_seqs, 1);
  }
}

TEST(Qwen3VlProcessing, PlansVideosAsTheWorkedExamples) {
  struct Case {
    std::int64_t frames, height, width;
    std::array<std::int64_t, 3> grid;
    std::int64_t tokens;
  };
  for (const Case& c :
       {Case{16, 720, 1280, {8, 44, 80}, 7040}, Case{15, 720, 1280, {8, 44, 80}, 7040},
        Case{64, 1080, 1920, {32, 28, 52}, 11648}, Case{768, 1080, 1920, {384, 8, 14}, 10752},
        Case{2, 64, 48, {1, 4, 4}, 4}, Case{1, 64, 48, {1, 4, 4}, 4}}) {
    const ItemPlan plan = processor_of().plan_video(c.frames, c.width, c.height);
    EXPECT_EQ(plan.grid, c.grid) << c.frames;
    EXPECT_EQ(plan.spec.out_rows, c.tokens);
    EXPECT_EQ(plan.spec.num_seqs, c.grid[0]);
  }
}

using Indices = std::vector<std::int64_t>;

TEST(Qwen3VlProcessing, SamplesFramesAsTheWorkedExamples) {
  const common::GridProcessor processor = processor_of();
  EXPECT_EQ(processor.sample_frames(100, 25, 2), (Indices{0, 14, 28, 42, 57, 71, 85, 99}));
  EXPECT_EQ(processor.timestamps(std::vector<double>{0.0, 0.25, 1.0, 2.0, 3.0}),
            (std::vector<double>{0.125, 1.5, 3.0}))
      << "the middle of a temporal patch; an odd last frame is repeated";
  EXPECT_EQ(processor.sample_frames(30, 10, 2), (Indices{0, 6, 12, 17, 23, 29}));
  EXPECT_EQ(processor.sample_frames(3, 30, 2), (Indices{0, 1, 2}));
  EXPECT_EQ(processor.sample_frames(20, 24, 2), (Indices{0, 6, 13, 19}));
  EXPECT_EQ(processor.sample_frames(20, 0, 2), (Indices{0, 6, 13, 19}))
      << "unknown rate counts as 24";
  EXPECT_EQ(processor.sample_frames(1, 24, 2), Indices{0});
  EXPECT_EQ(processor.sample_frames(100000, 25, 2).size(), 768u);
  EXPECT_THROW((void)processor.sample_frames(10, 25, 0), Error);
}

TEST(Qwen3VlProcessing, BoundsOfSampledFramesAreThoseOfTheVideoFile) {
  const common::GridProcessor processor =
      processor_of({.video_preprocessor = R"({"min_frames": 2, "max_frames": 3})"});
  EXPECT_EQ(processor.sample_frames(20, 24, 2), (Indices{0, 19}));
  EXPECT_EQ(processor.sample_frames(1000, 24, 2).size(), 3u);
  test::expect_error(ErrorCode::kCorruptData, "video_preprocessor_config.json: max_frames",
                     [] { (void)processor_of({.video_preprocessor = R"({"max_frames": 0})"}); });
}

TEST(Qwen3VlProcessing, CapsPixelsPerFrameWhenAsked) {
  const common::GridProcessor processor =
      processor_of({.video_preprocessor = R"({"cap_pixels_per_frame": true, "max_video_tokens": 100,
                                 "size": {"shortest_edge": 4096, "longest_edge": 25165824}})"});
  // 100 tokens of 32 x 32 pixels: a frame may have 102400 pixels.
  const ItemPlan plan = processor.plan_video(4, 1280, 720);
  EXPECT_LE(plan.resized_height_px * plan.resized_width_px, 102400);
  EXPECT_GT(plan.resized_height_px * plan.resized_width_px, 80000);
}

TEST(Qwen3VlProcessing, AnImageFileWithoutSizeHasThatOfItsClass) {
  const auto limits = [](const test::ConfigTexts& texts) {
    return read_processing(test::config_files(texts), {}, {}).limits;
  };
  EXPECT_EQ(limits({}).image.min_pixels, 65536);
  for (const char* text : {"{}", R"({"size": null})"}) {
    EXPECT_EQ(limits({.preprocessor = text}).image.min_pixels, 3136);
    EXPECT_EQ(limits({.preprocessor = text}).image.max_pixels, 1003520);
  }
  EXPECT_EQ(limits({.preprocessor = R"({"max_pixels": 50000})"}).image.min_pixels, 3136);
}

TEST(Qwen3VlProcessing, AVideoWithoutSizeHasThatOfItsClass) {
  using Grid = std::array<std::int64_t, 3>;
  // Limits beside `size` are nothing to the class of videos, whichever file they stand in.
  for (const test::ConfigTexts& texts :
       {test::ConfigTexts{.video_preprocessor = "{}"}, test::ConfigTexts{.preprocessor = "{}"},
        test::ConfigTexts{.video_preprocessor = R"({"min_pixels": 8000, "max_pixels": 80000})"},
        test::ConfigTexts{.preprocessor = R"({"max_pixels": 80000,
                              "image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]})"}}) {
    common::GridProcessing p = read_processing(test::config_files(texts), {}, {});
    EXPECT_EQ(p.limits.video.min_pixels, 131072);
    EXPECT_EQ(p.limits.video.max_pixels, 786432);
    p.video_refusal.clear();
    const common::GridProcessor processor(p);
    EXPECT_EQ(processor.plan_video(2, 48, 64).grid, (Grid{1, 20, 14}));
    EXPECT_EQ(processor.plan_video(4, 640, 480).grid, (Grid{2, 24, 32}));
    EXPECT_EQ(processor.plan_video(16, 1280, 720).grid, (Grid{8, 10, 18}));
  }
}

TEST(Qwen3VlProcessing, ScalingThatAFileDoesNotSayIsThatOfItsClass) {
  const auto read = [](const test::ConfigTexts& texts) {
    return read_processing(test::config_files(texts), {}, {});
  };
  EXPECT_EQ(read({}).scaling, common::PixelScaling{}) << "that of the released checkpoints";
  const common::GridProcessing silent = read({.preprocessor = "{}"});
  EXPECT_EQ(silent.scaling, common::kClipScaling);
  EXPECT_EQ(silent.video_refusal,
            "preprocessor_config.json: videos with another image_mean, image_std than images are "
            "not supported")
      << "the class of videos has 0.5";
  EXPECT_EQ(
      read({.preprocessor = R"({"image_mean": [0.5, 0.5, 0.5], "image_std": [0.5, 0.5, 0.5]})",
            .video_preprocessor = "{}"})
          .video_refusal,
      "");
}

TEST(Qwen3VlProcessing, SaysWhereBoundsOfSampledFramesComeFrom) {
  const std::string sources =
      read_processing(test::config_files({.video_preprocessor = R"({"max_frames": 3})"}), {}, {})
          .sources;
  EXPECT_NE(sources.find("video.given=max_frames "), std::string::npos) << sources;
  EXPECT_TRUE(sources.ends_with(",min_frames,cap_pixels_per_frame,max_video_tokens")) << sources;
}

common::GridProcessing golden_processing(const std::string& folder) {
  const checkpoint::HfConfig files = checkpoint::read_hf_config(folder);
  return read_processing(files, parse_config(files).grid, {});
}

TEST(Qwen3VlProcessing, ReadsTheLimitsOfTheGoldenCheckpoint) {
  for (const std::string& folder : test::golden_folders("qwen3_vl", "config.json")) {
    const common::GridLimits limits = golden_processing(folder).limits;
    EXPECT_EQ(limits.image.min_pixels, 4096);
    EXPECT_EQ(limits.video.max_pixels, 786432);
  }
}

}  // namespace
}  // namespace fovea::qwen3_vl
