// Sizes and segments of MiniMax-M3. Bytes are compared in common/grid/golden_patches_test.cpp.
#include "models/minimax_m3_vl/processor.h"

#include <gtest/gtest.h>

#include "models/config_files.h"
#include "support/expect_error.h"

namespace fovea::minimax_m3_vl {
namespace {

Processor processor_of(const test::ConfigTexts& texts) {
  return Processor(read_processing(test::config_files(texts), Config{}, {}));
}

TEST(MiniMaxM3Processor, LimitsOfImagesAreInPixels) {
  using Grid = std::array<std::int64_t, 3>;
  const Processor released = processor_of({.preprocessor = R"({"size": [672, 672]})"});
  EXPECT_EQ(released.plan_image(1920, 1080).grid, (Grid{1, 36, 64})) << "451584 pixels";
  const Processor edges =
      processor_of({.preprocessor = R"({"size": {"shortest_edge": 3136, "longest_edge": 31360}})"});
  EXPECT_EQ(edges.plan_image(180, 150).grid, (Grid{1, 10, 12}));
  const Processor beside = processor_of({.preprocessor = R"({"max_pixels": 31360})"});
  EXPECT_EQ(beside.plan_image(180, 150).grid, (Grid{1, 10, 12}));
}

TEST(MiniMaxM3Processor, EqualSegmentsAreUnits) {
  const Processor processor =
      processor_of({.video_preprocessor = R"({"vision_segment_max_frames": 2})"});
  const ItemPlan even = processor.plan_video(7, 100, 76);  // 4 temporal patches, the last repeated
  EXPECT_EQ(even.spec.num_seqs, 2);
  EXPECT_EQ(even.spec.units[0].count, 2);
  EXPECT_EQ(even.unit_bytes[0], even.pixel_bytes / 7 * 4);
  const ItemPlan odd = processor.plan_video(6, 100, 76);
  EXPECT_EQ(odd.spec.num_seqs, 2);
  EXPECT_EQ(odd.spec.units[0].count, 1);
  EXPECT_EQ(odd.unit_bytes[0], odd.pixel_bytes);
  const ItemPlan short_one = processor.plan_video(1, 100, 76);
  EXPECT_EQ(short_one.spec.num_seqs, 1);
  EXPECT_EQ(short_one.unit_bytes[0], short_one.pixel_bytes);
  const ItemPlan grid = processor.plan_grid(Modality::kVideo, {4, 4, 4});
  EXPECT_EQ(grid.spec.units[0].count, 2);
}

TEST(MiniMaxM3Processor, WithoutALengthAVideoIsOneSegment) {
  const Processor processor =
      processor_of({.video_preprocessor = R"({"vision_segment_max_frames": null})"});
  EXPECT_EQ(processor.plan_video(20, 100, 76).spec.num_seqs, 1);
  EXPECT_EQ(processor_of({}).plan_video(20, 100, 76).spec.num_seqs, 3) << "of config.json";
}

TEST(MiniMaxM3Processor, FramesAreSampledWithinBounds) {
  const Processor processor =
      processor_of({.video_preprocessor = R"({"min_frames": 2, "max_frames": 3})"});
  using Frames = std::vector<std::int64_t>;
  EXPECT_EQ(processor.sample_frames(60, 20, 0.1), (Frames{0, 30}));
  EXPECT_EQ(processor.sample_frames(60, 20, 20), (Frames{0, 20, 40}));
  EXPECT_EQ(processor.sample_frames(1, 20, 20), Frames{0});
}

TEST(MiniMaxM3Processor, RefusesWhatTheTowerDoesNotDo) {
  const auto expect_refused = [](ErrorCode code, const std::string& message,
                                 const std::string& file) {
    test::expect_error(code, message, [&] { (void)processor_of({.preprocessor = file}); });
  };
  expect_refused(ErrorCode::kCorruptData, "merge_size: 4 contradicts config.json",
                 R"({"merge_size": 4})");
  expect_refused(ErrorCode::kCorruptData, "expected 0 < min_pixels <= max_pixels",
                 R"({"min_pixels": 9, "max_pixels": 8})");
  expect_refused(ErrorCode::kUnsupported, "do_normalize: false is not supported",
                 R"({"do_normalize": false})");
}

}  // namespace
}  // namespace fovea::minimax_m3_vl
