// Plans and bytes of items that are grids of patches, with rules that keep sizes as they are.
#include "models/common/grid/processor.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "models/common/grid/same_size.h"
#include "support/expect_error.h"

namespace fovea::common {
namespace {

using Grid = std::array<std::int64_t, 3>;

/// Patches of 4 x 4 pixels; images and videos keep their sizes; samples the last frame alone.
GridProcessing small_processing() {
  GridProcessing processing = test::same_size(4);
  processing.sample_frames = [](std::int64_t total_frames, double, double) {
    return std::vector<std::int64_t>{total_frames - 1};
  };
  return processing;
}

const GridProcessor& small_processor() {
  static const GridProcessor processor(small_processing());
  return processor;
}

TEST(GridProcessor, CountsFollowFromTheResizedSize) {
  GridProcessing processing = small_processing();
  processing.image_size = [](std::int64_t, std::int64_t) { return Size2d{16, 24}; };
  const ItemPlan plan = GridProcessor(processing).plan_image(100, 50);
  EXPECT_EQ(plan.modality, Modality::kImage);
  EXPECT_EQ(plan.source_width_px, 100);
  EXPECT_EQ(plan.source_height_px, 50);
  EXPECT_EQ(plan.resized_width_px, 24);
  EXPECT_EQ(plan.resized_height_px, 16);
  EXPECT_EQ(plan.grid, (Grid{1, 4, 6}));
  EXPECT_TRUE(plan.has_grid_thw);
  EXPECT_EQ(plan.pixel_bytes, 16U * 24 * 3);
  EXPECT_EQ(plan.spec.input_rows, 24);
  EXPECT_EQ(plan.spec.out_rows, 6);
  EXPECT_EQ(plan.spec.num_seqs, 1);
  EXPECT_EQ(plan.spec.path_tokens[0], 6);
}

TEST(GridProcessor, AnOddLastFrameMakesAPatchOfItsOwn) {
  const ItemPlan plan = small_processor().plan_video(5, 16, 8);
  EXPECT_EQ(plan.modality, Modality::kVideo);
  EXPECT_EQ(plan.num_frames, 5);
  EXPECT_EQ(plan.grid, (Grid{3, 2, 4}));
  EXPECT_EQ(plan.spec.num_seqs, 3);
  EXPECT_EQ(plan.pixel_bytes, 5U * 16 * 8 * 3) << "a repeated frame is kept once";
}

/// Frames with patches of their own, in temporal patches of `frames`.
GridProcessor apart_processor(FrameUse use, std::int64_t frames) {
  GridProcessing processing = small_processing();
  processing.geometry.temporal_patch_size = frames;
  processing.geometry.frames = use;
  return GridProcessor(processing);
}

TEST(GridProcessor, FramesWithPatchesOfTheirOwnMakeOneGridOfTokens) {
  const GridProcessor pairs = apart_processor(FrameUse::kApart, 2);
  const ItemPlan plan = pairs.plan_video(5, 16, 8);
  EXPECT_EQ(plan.grid, (Grid{6, 2, 4})) << "the last frame counts twice";
  EXPECT_EQ(plan.spec.units[0], (ItemUnits{3, 16, 2}));
  EXPECT_EQ(plan.spec.out_rows, 6);
  EXPECT_EQ(plan.spec.num_seqs, 6);
  EXPECT_EQ(plan.pixel_bytes, 5U * 16 * 8 * 3);
  EXPECT_EQ(plan.unit_bytes[0], 2U * 16 * 8 * 3);
  EXPECT_EQ(pairs.plan_video(1, 16, 8).grid, (Grid{2, 2, 4}));
  EXPECT_EQ(pairs.plan_image(16, 8).grid, (Grid{1, 2, 4}));
  EXPECT_EQ(pairs.plan_image(16, 8).spec.units[0], (ItemUnits{1, 8, 2}));
  test::expect_error(ErrorCode::kInvalidArgument,
                     "grid_thw of a video begins with a multiple of 2, got 3", [&] {
                       (void)pairs.plan_grid(Modality::kVideo, {3, 2, 4});
                     });
}

TEST(GridProcessor, AShortVideoThatAttendsAsAWholeHasTheFramesThatItHas) {
  const GridProcessor chunks = apart_processor(FrameUse::kTogether, 4);
  EXPECT_EQ(chunks.plan_video(3, 16, 8).grid, (Grid{3, 2, 4}));
  EXPECT_EQ(chunks.plan_video(3, 16, 8).spec.units[0], (ItemUnits{1, 24, 2}));
  EXPECT_EQ(chunks.plan_video(5, 16, 8).grid, (Grid{8, 2, 4})) << "room for two whole chunks";
  EXPECT_EQ(chunks.plan_video(5, 16, 8).spec.units[0], (ItemUnits{2, 32, 2}));
  EXPECT_EQ(chunks.plan_grid(Modality::kVideo, {3, 2, 4}).spec.input_rows, 24);
  test::expect_error(ErrorCode::kInvalidArgument,
                     "grid_thw of a video begins with a multiple of 4, or less, got 5", [&] {
                       (void)chunks.plan_grid(Modality::kVideo, {5, 2, 4});
                     });
}

TEST(GridProcessor, PixelValuesOfFramesRowByRowAreKeptTokenByToken) {
  GridProcessing processing = small_processing();
  processing.geometry.temporal_patch_size = 2;
  processing.geometry.frames = FrameUse::kTogether;
  processing.row_major_values = true;
  const GridProcessor processor(processing);
  const ItemPlan plan = processor.plan_grid(Modality::kVideo, {2, 2, 4});
  std::vector<float> values;  // every patch has one value, that of the byte 10 * (its index)
  for (int patch = 0; patch < 16; ++patch) {
    const media::NormalizeTable table = processing.scaling.table();
    values.insert(values.end(), 48, table[0][static_cast<std::size_t>(10 * patch)]);
  }
  std::vector<std::uint8_t> pixels(plan.pixel_bytes);
  processor.fill_pixel_values(
      plan, {reinterpret_cast<const std::byte*>(values.data()), DType::kF32, {16, 48}}, pixels);
  std::vector<int> patches;
  for (std::size_t patch = 0; patch < 16; ++patch) patches.push_back(pixels[patch * 48] / 10);
  EXPECT_EQ(patches, (std::vector<int>{0, 1, 4, 5, 2, 3, 6, 7, 8, 9, 12, 13, 10, 11, 14, 15}));
}

TEST(GridProcessor, WithoutARuleThereAreNoVideos) {
  GridProcessing processing = small_processing();
  processing.video_size = nullptr;
  processing.sample_frames = nullptr;
  const GridProcessor processor(processing);
  test::expect_error(ErrorCode::kUnsupported, "the model takes no videos",
                     [&] { (void)processor.plan_video(2, 16, 16); });
  test::expect_error(ErrorCode::kUnsupported, "the model takes no videos",
                     [&] { (void)processor.sample_frames(2, 1, 1); });
}

TEST(GridProcessor, SamplesOnlyFramesThatThereAreAtARateAboveZero) {
  EXPECT_EQ(small_processor().sample_frames(3, 1, 1), std::vector<std::int64_t>{2});
  test::expect_error(ErrorCode::kInvalidArgument, "cannot sample 10 frames at 0 frames per second",
                     [] { (void)small_processor().sample_frames(10, 25, 0); });
  test::expect_error(ErrorCode::kInvalidArgument, "cannot sample 0 frames",
                     [] { (void)small_processor().sample_frames(0, 25, 2); });
}

TEST(GridProcessor, AGridOfAnImageKeepsOneFrameOfAVideoAll) {
  const auto plan = [](Modality modality, const Grid& grid) {
    return small_processor().plan_grid(modality, grid);
  };
  EXPECT_EQ(plan(Modality::kImage, {1, 2, 4}).pixel_bytes, 8U * 16 * 3);
  EXPECT_EQ(plan(Modality::kImage, {1, 2, 4}).num_frames, 1);
  EXPECT_EQ(plan(Modality::kImage, {1, 2, 4}).layout, PixelLayout::kPatches);
  EXPECT_EQ(plan(Modality::kVideo, {3, 2, 4}).pixel_bytes, 3U * 2 * 8 * 16 * 3);
  EXPECT_EQ(plan(Modality::kVideo, {3, 2, 4}).num_frames, 6);
}

TEST(GridProcessor, RefusesGridsThatNoItemHas) {
  const auto expect_no_grid = [](Modality modality, const Grid& grid, const std::string& text) {
    test::expect_error(ErrorCode::kInvalidArgument, text,
                       [&] { (void)small_processor().plan_grid(modality, grid); });
  };
  expect_no_grid(Modality::kImage, {1, 3, 4}, "sides that are multiples of 2, got 1x3x4");
  expect_no_grid(Modality::kImage, {1, 4, 3}, "sides that are multiples of 2, got 1x4x3");
  expect_no_grid(Modality::kVideo, {0, 4, 4}, "must be positive");
  expect_no_grid(Modality::kVideo, {1, -2, -2}, "must be positive");
  expect_no_grid(Modality::kImage, {2, 4, 4}, "of an image begins with 1, got 2x4x4");
  expect_no_grid(Modality::kVideo, {1, 1 << 20, 1 << 20}, "more pixels than");
  expect_no_grid(Modality::kVideo, {std::int64_t{1} << 62, 2, 2}, "more pixels than");
}

TEST(GridProcessor, AVideoMayHaveMorePixelsThanOffsetsReach) {
  const ItemPlan plan = small_processor().plan_grid(Modality::kVideo, {1 << 20, 64, 64});
  EXPECT_GT(plan.pixel_bytes, std::size_t{1} << 32);
  EXPECT_EQ(plan.unit_bytes[0] << 20, plan.pixel_bytes);
}

TEST(GridProcessor, FramesAreResizedOneAfterTheOther) {
  GridProcessing processing = small_processing();
  processing.video_size = [](std::int64_t, std::int64_t, std::int64_t) { return Size2d{8, 8}; };
  const GridProcessor processor(processing);
  const ItemPlan plan = processor.plan_video(2, 16, 24);
  const std::vector<std::uint8_t> dark(16 * 24 * 3, 10);
  const std::vector<std::uint8_t> light(16 * 24 * 3, 200);
  std::vector<std::uint8_t> out(plan.pixel_bytes);
  processor.fill_frame(plan, 1, {light.data(), 16, 24}, out);
  processor.fill_frame(plan, 0, {dark.data(), 16, 24}, out);
  std::vector<std::uint8_t> want(2 * 8 * 8 * 3, 10);
  std::fill(want.begin() + 8 * 8 * 3, want.end(), std::uint8_t{200});
  EXPECT_EQ(out, want);
}

TEST(GridProcessor, RefusesFramesOfAnotherSizeOrNumber) {
  const ItemPlan plan = small_processor().plan_video(2, 64, 48);
  const std::vector<std::uint8_t> pixels(64 * 48 * 3);
  std::vector<std::uint8_t> out(plan.pixel_bytes);
  const auto expect_refused = [&](std::int64_t index, const RgbView& frame,
                                  const std::string& text) {
    test::expect_error(ErrorCode::kInvalidArgument, text,
                       [&] { small_processor().fill_frame(plan, index, frame, out); });
  };
  expect_refused(1, {pixels.data(), 48, 64}, "frame 1 is 48x64 pixels, planned was 64x48");
  expect_refused(2, {pixels.data(), 64, 48}, "item was planned for 2 frames, got frame 2");
  expect_refused(-1, {pixels.data(), 64, 48}, "item was planned for 2 frames, got frame -1");
}

}  // namespace
}  // namespace fovea::common
