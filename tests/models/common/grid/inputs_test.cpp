// Patch rows in merge-block order, and the buffers of a batch: declared, filled and read back.
#include "models/common/grid/inputs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "device/cpu/cpu_device.h"
#include "models/common/grid/same_size.h"
#include "models/host_inputs.h"
#include "ops/cpu/cpu_kernels.h"
#include "support/expect_error.h"

namespace fovea::common {
namespace {

using Ints = std::vector<std::int32_t>;

struct PatchRows {
  Ints positions;
  Ints sources;
};

PatchRows rows_of(const GridGeometry& geometry, const ItemPlan& plan, std::int64_t pixel_offset) {
  const auto size = static_cast<std::size_t>(4 * plan.spec.input_rows);
  PatchRows rows{Ints(size), Ints(size)};
  write_patch_rows(geometry, plan, pixel_offset, plan.pixel_bytes, rows.positions, rows.sources);
  return rows;
}

TEST(PatchRows, AreInMergeBlockOrder) {
  const ItemPlan plan = GridProcessor(test::same_size(16)).plan_image(96, 64);
  ASSERT_EQ(plan.grid, (std::array<std::int64_t, 3>{1, 4, 6}));
  const auto [positions, sources] = rows_of({}, plan, 1000);
  const std::vector<std::pair<int, int>> expected{{0, 0}, {0, 1}, {1, 0}, {1, 1}, {0, 2}, {0, 3},
                                                  {1, 2}, {1, 3}, {0, 4}, {0, 5}, {1, 4}, {1, 5},
                                                  {2, 0}, {2, 1}, {3, 0}, {3, 1}, {2, 2}, {2, 3},
                                                  {3, 2}, {3, 3}, {2, 4}, {2, 5}, {3, 4}, {3, 5}};
  for (std::size_t r = 0; r < expected.size(); ++r) {
    const auto [y, x] = expected[r];
    EXPECT_EQ(positions[4 * r], y);
    EXPECT_EQ(positions[4 * r + 1], x);
    EXPECT_EQ(positions[4 * r + 2], 4);
    EXPECT_EQ(positions[4 * r + 3], 6);
    EXPECT_EQ(sources[4 * r], 1000 + (y * 16 * 96 + x * 16) * 3);
    EXPECT_EQ(sources[4 * r + 1], 96 * 3);
    EXPECT_EQ(sources[4 * r + 2], 0) << "a still image repeats its only frame";
  }
}

TEST(PatchRows, OfAnOddVideoRepeatTheLastFrame) {
  const ItemPlan plan = GridProcessor(test::same_size(16)).plan_video(3, 32, 32);
  ASSERT_EQ(plan.grid, (std::array<std::int64_t, 3>{2, 2, 2}));
  const Ints sources = rows_of({}, plan, 0).sources;
  const std::int32_t frame = 32 * 32 * 3;
  EXPECT_EQ(sources[2], frame) << "frames 0 and 1";
  EXPECT_EQ(sources[4 * 4], 2 * frame);
  EXPECT_EQ(sources[4 * 4 + 2], 0) << "frame 2 twice";
}

TEST(PatchRows, OfFramesWithPatchesOfTheirOwnFollowEachOther) {
  GridProcessing processing = test::same_size(4);
  processing.geometry.frames = FrameUse::kApart;
  const GridProcessor processor(processing);
  const ItemPlan plan = processor.plan_video(2, 8, 8);
  ASSERT_EQ(plan.spec.input_rows, 8);
  const Ints images = rows_of(processing.geometry, plan, 0).sources;
  const Ints tiles =
      rows_of(processing.geometry, processor.plan_grid(Modality::kVideo, plan.grid), 0).sources;
  EXPECT_EQ(images[4 * 4], 8 * 8 * 3);
  for (std::size_t row = 0; row < 8; ++row) {
    EXPECT_EQ(tiles[4 * row], static_cast<std::int32_t>(row) * 4 * 4 * 3) << row;
  }
}

TEST(PatchRows, OfAGridHaveThePositionsOfItsItemAndTilesOfTheirOwn) {
  const GridProcessor processor(test::same_size(4));
  const GridGeometry& geometry = processor.processing().geometry;
  for (const ItemPlan& plan : {processor.plan_image(24, 32), processor.plan_video(5, 16, 24)}) {
    const PatchRows item = rows_of(geometry, plan, 7);
    const PatchRows grid = rows_of(geometry, processor.plan_grid(plan.modality, plan.grid), 7);
    EXPECT_EQ(grid.positions, item.positions);
    constexpr std::int32_t kPlane = 4 * 4;
    const bool is_still = plan.modality == Modality::kImage;
    const Ints planes = is_still ? Ints{7, 4, 0, kPlane} : Ints{7, 4, kPlane, 2 * kPlane};
    EXPECT_EQ(Ints(grid.sources.begin(), grid.sources.begin() + 4), planes)
        << "a line of a plane is as wide as a patch";
  }
}

/// An image of 16 x 8 pixels and a video of three frames of 8 x 8, patches of 4 x 4 pixels: 8 + 8
/// patches in one and two sequences.
class GridInputsTest : public ::testing::Test {
 protected:
  GridInputsTest() {
    for (const ItemPlan& plan : {processor_.plan_image(16, 8), processor_.plan_video(3, 8, 8)}) {
      PreparedItem& item = items_.emplace_back();
      item.plan = plan;
      for (std::size_t i = 0; i < plan.pixel_bytes; ++i) {
        item.pixels.push_back(static_cast<std::uint8_t>(items_.size() * 100 + i % 50));
      }
    }
  }
  void fill(test::HostInputs& inputs) const { fill(inputs, test::whole_items(items_)); }
  void fill(test::HostInputs& inputs, const std::vector<ItemPart>& parts) const {
    inputs.fill([&](InputWriter& writer) { GridInputs::fill(geometry_, parts, writer); });
  }

  const GridProcessor processor_{test::same_size(4)};
  const GridGeometry geometry_ = processor_.processing().geometry;
  std::vector<PreparedItem> items_;
};

/// Live counts and offsets of an image and a video of three frames, 8 patches and 4 a frame.
Ints counts_of(FrameUse use, std::int64_t seqs) {
  GridProcessing processing = test::same_size(4);
  processing.geometry.frames = use;
  const GridProcessor processor(processing);
  std::vector<PreparedItem> items;
  for (const ItemPlan& plan : {processor.plan_image(16, 8), processor.plan_video(3, 8, 8)}) {
    items.push_back({.plan = plan, .pixels = std::vector<std::uint8_t>(plan.pixel_bytes)});
  }
  const std::vector<ItemPart> parts = test::whole_items(items);
  test::HostInputs memory(
      GridInputs::declare(processing.geometry, {.tokens = 4, .items = 2, .seqs = seqs}));
  memory.fill([&](InputWriter& writer) { GridInputs::fill(processing.geometry, parts, writer); });
  const GridInputs in = GridInputs::of(memory.tensors());
  Ints counts{*in.patches.count, *in.tokens.count, *in.seqs.count};
  const Ints offsets = test::ints(in.cu_seqlens, *in.seqs.count + 1);
  counts.insert(counts.end(), offsets.begin(), offsets.end());
  return counts;
}

TEST(GridInputs, OfFramesWithPatchesOfTheirOwnHaveTheSequencesOfTheTower) {
  EXPECT_EQ(counts_of(FrameUse::kApart, 5), (Ints{20, 4, 4, 0, 8, 12, 16, 20}));
  EXPECT_EQ(counts_of(FrameUse::kTogether, 5), (Ints{20, 4, 3, 0, 8, 16, 20}))
      << "the last chunk has one frame";
  test::expect_error(ErrorCode::kUnavailable, "positions",
                     [] { (void)counts_of(FrameUse::kTogether, 1); });
}

TEST_F(GridInputsTest, ABatchGivesCountsOffsetsAndTheBytesOfItsItems) {
  test::HostInputs memory(GridInputs::declare(geometry_, {.tokens = 8, .items = 4, .seqs = 6}));
  fill(memory);
  const GridInputs in = GridInputs::of(memory.tensors());
  EXPECT_EQ(*in.patches.count, 16);
  EXPECT_EQ(*in.tokens.count, 4);
  EXPECT_EQ(*in.seqs.count, 3);
  EXPECT_EQ(test::ints(in.cu_seqlens, 4), (Ints{0, 8, 12, 16}));
  const std::vector<std::uint8_t>& first = items_[0].pixels;
  const std::vector<std::uint8_t>& second = items_[1].pixels;
  const auto* const pixels = in.pixels.as<std::uint8_t>();
  EXPECT_TRUE(std::equal(first.begin(), first.end(), pixels));
  EXPECT_TRUE(std::equal(second.begin(), second.end(), pixels + first.size()));
}

TEST_F(GridInputsTest, RowsOfAnItemFollowThoseOfTheOneBeforeAndReadItsOwnBytes) {
  test::HostInputs memory(GridInputs::declare(geometry_, {.tokens = 8, .items = 4, .seqs = 6}));
  fill(memory);
  const GridInputs in = GridInputs::of(memory.tensors());
  PatchRows want = rows_of(geometry_, items_[0].plan, 0);
  const PatchRows second = rows_of(geometry_, items_[1].plan, 16 * 8 * 3);
  want.positions.insert(want.positions.end(), second.positions.begin(), second.positions.end());
  want.sources.insert(want.sources.end(), second.sources.begin(), second.sources.end());
  EXPECT_EQ(test::ints(in.positions, 4 * 16), want.positions);
  EXPECT_EQ(test::ints(in.sources, 4 * 16), want.sources);
}

TEST_F(GridInputsTest, TheRowsThatWereWrittenCanBePutInAnotherOrder) {
  test::HostInputs memory(GridInputs::declare(geometry_, {.tokens = 8, .items = 4, .seqs = 6}));
  memory.fill([&](InputWriter& writer) {
    const PatchTables rows = GridInputs::fill(geometry_, test::whole_items(items_), writer);
    ASSERT_EQ(rows.positions.size(), 4U * 16);
    ASSERT_EQ(rows.sources.size(), 4U * 16);
    rows.positions.back() = -1;
    rows.sources.back() = -2;
  });
  const GridInputs in = GridInputs::of(memory.tensors());
  EXPECT_EQ(test::ints(in.positions, 4 * 16).back(), -1);
  EXPECT_EQ(test::ints(in.sources, 4 * 16).back(), -2);
}

TEST_F(GridInputsTest, APartOfAVideoGivesTheRowsAndTheBytesOfItsFrames) {
  test::HostInputs memory(GridInputs::declare(geometry_, {.tokens = 8, .items = 4, .seqs = 6}));
  const PreparedItem& video = items_[1];
  const std::int32_t frame = 8 * 8 * 3;
  // The last temporal patch, of one frame that is repeated, before the first.
  fill(memory, {{.item = &video, .path = 0, .first = 1, .count = 1},
                {.item = &video, .path = 0, .first = 0, .count = 1}});
  const GridInputs in = GridInputs::of(memory.tensors());
  EXPECT_EQ(*in.patches.count, 8);
  EXPECT_EQ(*in.seqs.count, 2);
  EXPECT_EQ(test::ints(in.cu_seqlens, 3), (Ints{0, 4, 8}));
  const Ints sources = test::ints(in.sources, 4 * 8);
  EXPECT_EQ(sources[0], 0);
  EXPECT_EQ(sources[2], 0) << "frame 2 twice";
  EXPECT_EQ(sources[4 * 4], frame);
  EXPECT_EQ(sources[4 * 4 + 2], frame) << "frames 0 and 1";
  const Ints positions = test::ints(in.positions, 4 * 8);
  EXPECT_TRUE(std::equal(positions.begin(), positions.begin() + 16, positions.begin() + 16));
  EXPECT_EQ(memory.rows_of("pixels"), 3 * frame);
  const auto* const pixels = in.pixels.as<std::uint8_t>();
  EXPECT_TRUE(std::equal(pixels, pixels + frame, video.pixels.begin() + 2 * frame));
  EXPECT_TRUE(std::equal(pixels + frame, pixels + 3 * frame, video.pixels.begin()));
}

TEST_F(GridInputsTest, TheBuffersOfACapacityHoldItsTokensAndSequences) {
  test::HostInputs exact(GridInputs::declare(geometry_, {.tokens = 4, .items = 2, .seqs = 3}));
  EXPECT_NO_THROW(fill(exact));
  EXPECT_EQ(exact.rows_of("positions"), 16);
  test::HostInputs few_tokens(GridInputs::declare(geometry_, {.tokens = 3, .items = 2, .seqs = 3}));
  test::expect_error(ErrorCode::kUnavailable, "holds 12 rows, the batch needs 16",
                     [&] { fill(few_tokens); });
  test::HostInputs few_seqs(GridInputs::declare(geometry_, {.tokens = 4, .items = 2, .seqs = 2}));
  test::expect_error(ErrorCode::kUnavailable, "\"cu_seqlens\" holds 3 rows, the batch needs 4",
                     [&] { fill(few_seqs); });
}

TEST(RotatedRows, HaveTheAnglesOfTheirPositionsAndTheSequencesOfTheInputs) {
  const auto kernels = make_cpu_kernels(CpuIsa::kPortable, 1);
  const auto device = make_cpu_device(1, *kernels);
  const auto stream = device->create_stream();
  const auto weights = checkpoint::WeightSource::dummy(0);
  WeightLoader loader(weights, "", *device, *stream);
  const Tensor inv_freq = inverse_frequencies(loader, 8, 10000);  // 1 and 0.01
  const std::vector<std::int32_t> positions{1, 2, 4, 6};
  GridInputs in;
  in.positions = {reinterpret_cast<const std::byte*>(positions.data()), DType::kI32, {1, 4}};
  in.cu_seqlens = in.positions;
  const Buffer memory = device->allocate(1 << 16);
  Arena arena(memory.data(), memory.bytes());
  ExecContext ctx{*stream, *kernels, arena, *stream};
  const AttendedRows rows = rotated_rows(ctx, in, inv_freq, 1);
  stream->synchronize();
  const std::vector<double> angles{1, 0.01, 2, 0.02};
  for (std::size_t j = 0; j < angles.size(); ++j) {
    EXPECT_NEAR(rows.cos.as<float>()[j], std::cos(angles[j]), 1e-6) << j;
    EXPECT_NEAR(rows.sin.as<float>()[j], std::sin(angles[j]), 1e-6) << j;
  }
  EXPECT_EQ(rows.sequences.max_seqlen, 1);
  EXPECT_EQ(rows.sequences.cu_seqlens.data, in.cu_seqlens.data);
}

}  // namespace
}  // namespace fovea::common
