// From images and frames to views: tilings as the reference has them, and what files may say.
#include "models/idefics3/processor.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::idefics3 {
namespace {

using common::Size2d;

Processing processing_of(const std::string& file, const std::string& video = "",
                         Format format = Format::kSmolVlm) {
  Config config{.format = format};
  config.tower.view = {.side_px = 512, .patch_px = 16, .merge = 4};
  return read_processing(test::config_files({.preprocessor = file, .video_preprocessor = video}),
                         config, {});
}

constexpr const char* kPublished =
    R"({"size": {"longest_edge": 2048}, "max_image_size": {"longest_edge": 512}})";

TEST(Idefics3Processor, CutsImagesAsTheReference) {
  struct Case {
    std::int64_t width, height, cols, rows;
  };
  const Processor processor(processing_of(kPublished));
  for (const Case& c : {Case{1240, 1754, 3, 4}, Case{1920, 1080, 4, 3}, Case{2000, 90, 4, 1},
                        Case{2600, 1900, 4, 3}, Case{333, 77, 4, 1}, Case{40, 500, 1, 4},
                        Case{640, 480, 4, 3}, Case{1, 1, 4, 4}, Case{1, 1000, 1, 4}}) {
    SCOPED_TRACE(::testing::Message() << c.width << "x" << c.height);
    const ItemPlan plan = processor.plan_image(c.width, c.height);
    EXPECT_EQ(plan.grid, (std::array<std::int64_t, 3>{1, c.rows, c.cols}));
    EXPECT_EQ(plan.spec.units[0].count, c.rows * c.cols + 1);
    EXPECT_EQ(plan.spec.out_rows, (c.rows * c.cols + 1) * 64);
  }
}

TEST(Idefics3Processor, TheLongestEdgeDecidesTheFirstSize) {
  EXPECT_EQ(first_size(1920, 1080, 1456), (Size2d{820, 1456})) << "819 becomes even";
  EXPECT_EQ(first_size(1080, 1920, 1456), (Size2d{1456, 820}));
  EXPECT_EQ(first_size(100, 1, 50), (Size2d{1, 50})) << "0 becomes 1";
  EXPECT_EQ(first_size(1000, 1000, 101), (Size2d{102, 101})) << "the other side, too";
  EXPECT_EQ(first_size(2000, 1000, 8192), (Size2d{2048, 4096})) << "at most 4096";
}

TEST(Idefics3Processor, WithoutSplittingAnImageIsOneView) {
  const Processor processor(processing_of(R"({"size": {"longest_edge": 2048},
      "max_image_size": {"longest_edge": 512}, "do_image_splitting": false})"));
  const ItemPlan plan = processor.plan_image(1920, 1080);
  EXPECT_EQ(plan.spec.out_rows, 64);
  EXPECT_EQ(plan.resized_width_px, 512);
  EXPECT_EQ(plan.target_width_px, 2048) << "decoders may not shrink it below the first size";
}

TEST(Idefics3Processor, AnImageOfOneTileIsOneView) {
  const Processor processor(processing_of(R"({"size": {"longest_edge": 512},
      "max_image_size": {"longest_edge": 512}})"));
  EXPECT_EQ(processor.plan_image(1920, 1080).spec.units[0].count, 1);
}

TEST(Idefics3Processor, ReadsTheFirstSizeOfVideos) {
  EXPECT_EQ(processing_of(kPublished).video_longest_edge, 2048) << "of the file of images";
  const auto edge_of = [](const std::string& more) {
    return processing_of(kPublished, R"({"max_image_size": {"longest_edge": 512})" + more + "}")
        .video_longest_edge;
  };
  constexpr const char* kSampling = R"(, "video_sampling": {"video_size": {"longest_edge": 700}})";
  EXPECT_EQ(edge_of(""), 1456) << "of the reference's class";
  EXPECT_EQ(edge_of(kSampling), 700);
  EXPECT_EQ(edge_of(std::string(kSampling) + R"(, "size": {"longest_edge": 600})"), 600);
}

TEST(Idefics3Processor, FramesAreViews) {
  const ItemPlan plan = Processor(processing_of(kPublished)).plan_video(5, 320, 240);
  EXPECT_EQ(plan.grid, (std::array<std::int64_t, 3>{5, 1, 1}));
  EXPECT_EQ(plan.spec.units[0].count, 5);
  EXPECT_EQ(plan.spec.out_rows, 5 * 64);
}

TEST(Idefics3Processor, RefusesVideosOfIdefics3AndOfAnotherScaling) {
  test::expect_error(ErrorCode::kUnsupported, "video", [] {
    (void)Processor(processing_of(kPublished, "", Format::kIdefics3)).plan_video(5, 320, 240);
  });
  test::expect_error(
      ErrorCode::kUnsupported, "videos with another image_std, max_image_size than images", [] {
        const Processor processor(processing_of(kPublished, R"({"image_std": [1, 1, 1]})"));
        (void)processor.plan_video(5, 320, 240);
      });
}

TEST(Idefics3Processor, RefusesAScalingThatGivesTheValuesOfPadding) {
  test::expect_error(ErrorCode::kUnsupported,
                     "image_mean, image_std: 0,0,0 and 1,1,1 turn a colour", [] {
                       (void)processing_of(R"({"image_mean": [0, 0, 0], "image_std": [1, 1, 1],
                           "max_image_size": {"longest_edge": 512}})");
                     });
}

TEST(Idefics3Processor, SamplesFramesAsTheReference) {
  using Frames = std::vector<std::int64_t>;
  const Processor processor(processing_of(
      kPublished,
      R"({"max_image_size": {"longest_edge": 512}, "video_sampling": {"max_frames": 4}})"));
  EXPECT_EQ(processor.sample_frames(60, 30, 1), (Frames{0, 59}));
  EXPECT_EQ(processor.sample_frames(90, 30, 1), (Frames{0, 44, 89}));
  EXPECT_EQ(processor.sample_frames(3, 30, 1), (Frames{0}));
  EXPECT_EQ(processor.sample_frames(3, 1, 4), (Frames{0, 1, 2})) << "each frame once";
  // 7 seconds, of which 7 - 2 are more than 4 frames times 1: without the first and the last.
  EXPECT_EQ(processor.sample_frames(70, 10, 1), (Frames{10, 26, 43, 60}));
  EXPECT_EQ(processor.sample_frames(60, 10, 1), (Frames{0, 19, 39, 59})) << "6 - 2 are not";
}

TEST(Idefics3Processor, TheWholeImageIsMadeOfTheTiles) {
  // Two tiles of one colour each: the last view is half of each colour, away from the seam.
  Config config{.format = Format::kIdefics3};
  config.tower.view = {.side_px = 8, .patch_px = 4};
  const Processor processor(
      read_processing(test::config_files({.preprocessor = R"({"size": {"longest_edge": 16},
                                              "max_image_size": {"longest_edge": 8}})"}),
                      config, {}));
  std::vector<std::uint8_t> rgb;
  for (int y = 0; y < 8; ++y) {
    for (int x = 0; x < 16; ++x) rgb.insert(rgb.end(), 3, x < 8 ? 10 : 200);
  }
  const ItemPlan plan = processor.plan_image(16, 8);
  std::vector<std::uint8_t> pixels(plan.pixel_bytes);
  processor.fill_frame(plan, 0, {rgb.data(), 16, 8}, pixels);
  ASSERT_EQ(pixels.size(), 3U * 8 * 8 * 3);
  const auto all_are = [&](std::size_t view, std::uint8_t value) {
    const auto begin = pixels.begin() + static_cast<std::ptrdiff_t>(view * 192);
    return std::all_of(begin, begin + 192, [&](std::uint8_t v) { return v == value; });
  };
  EXPECT_TRUE(all_are(0, 10));
  EXPECT_TRUE(all_are(1, 200));
  EXPECT_EQ(pixels[384], 10);
  EXPECT_EQ(pixels.back(), 200);
}

}  // namespace
}  // namespace fovea::idefics3
