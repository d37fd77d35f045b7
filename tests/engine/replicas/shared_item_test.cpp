// An item in shares: where their rows go, and what its result says of them.
#include "engine/replicas/shared_item.h"

#include <gtest/gtest.h>

#include <vector>

#include "engine/rows/host_room.h"
#include "graph/mock_model.h"

namespace fovea {
namespace {

/// A clip of 10 frames of 4 rows; its rows are floats.
class SharedItemTest : public ::testing::Test {
 protected:
  [[nodiscard]] TowerItem item(const RowBlock* block = nullptr) {
    const RowDType dtype = block == nullptr ? RowDType::kFloat32 : block->dtype;
    return {&clip_, {&result_, block, dtype}};
  }
  /// What the tower knows about a share.
  static void set(const TowerItem& share, GraphUse graph, std::int64_t reused, double ms) {
    Embedding& known = *share.target.result;
    known.graph = graph;
    known.units_reused = reused;
    known.times.pack_ms = ms;
    known.times.encode_ms = 2 * ms;
    known.times.output_ms = 3 * ms;
  }
  /// The use of graphs of an item whose shares ran so.
  [[nodiscard]] GraphUse use_of(std::span<const GraphUse> shares) {
    SharedItem shared(item(), kWidth);
    std::int64_t unit = 0;
    for (const GraphUse use : shares) set(shared.add(clip_, {{unit++, 1}}), use, 0, 0);
    shared.finish();
    return result_.graph;
  }

  static constexpr std::int64_t kWidth = 32;
  static constexpr std::size_t kRowBytes = kWidth * sizeof(float);
  const PreparedItem clip_ = test::MockModel().make_item({10, 4, 4}, 1);
  Embedding result_;
};

TEST_F(SharedItemTest, RowsOfSharesLieOneAfterTheOtherInTheResult) {
  SharedItem shared(item(), kWidth);
  EXPECT_EQ(result_.rows, 40);
  EXPECT_EQ(result_.width, kWidth);
  EXPECT_EQ(result_.data.size(), 40 * kRowBytes);
  for (const auto& [first, count] : {UnitRange{0, 3}, {3, 1}, {4, 6}}) {
    const TowerItem share = shared.add(clip_, {.units = {first, count}});
    EXPECT_EQ(share.prepared, &clip_);
    EXPECT_EQ(share.keep, nullptr);
    EXPECT_EQ(share.spec().out_rows, 4 * count);
    const RowBlock& block = *share.target.block;
    EXPECT_EQ(block.data, result_.data.data() + 4 * static_cast<std::size_t>(first) * kRowBytes);
    EXPECT_EQ(block.rows, 4 * count);
    EXPECT_FALSE(share.target.is_on_gpu());
    EXPECT_NE(share.target.result, &result_);
  }
}

TEST_F(SharedItemTest, RowsOfSharesKeepTheStrideAndDtypeOfABlock) {
  const test::HostRoom room(45, kWidth, RowDType::kBFloat16, 6);
  SharedItem shared(item(&room.block()), kWidth);
  EXPECT_EQ(result_.dtype, RowDType::kBFloat16);
  EXPECT_TRUE(result_.data.empty());
  const TowerItem share = shared.add(clip_, {.units = {7, 3}});
  const RowBlock& block = *share.target.block;
  EXPECT_EQ(block.data, static_cast<std::byte*>(room.block().data) + 28 * (kWidth * 2 + 6));
  EXPECT_EQ(block.row_stride_bytes, kWidth * 2 + 6);
  EXPECT_EQ(block.dtype, RowDType::kBFloat16);
  EXPECT_EQ(share.target.dtype, RowDType::kBFloat16);
  EXPECT_EQ(block.rows, 12);
}

TEST_F(SharedItemTest, ABlockWithoutAStrideHasItsRowsOneAfterTheOther) {
  const test::HostRoom room(40, kWidth);
  SharedItem shared(item(&room.block()), kWidth);
  const TowerItem share = shared.add(clip_, {.units = {2, 2}});
  EXPECT_EQ(share.target.block->data, static_cast<std::byte*>(room.block().data) + 8 * kRowBytes);
}

TEST_F(SharedItemTest, SharesStayWhereTheyAreWhenMoreCome) {
  SharedItem shared(item(), kWidth);
  const TowerItem first = shared.add(clip_, {.units = {0, 1}});
  const auto* const data = first.target.block->data;
  for (std::int64_t unit = 1; unit < 10; ++unit) (void)shared.add(clip_, {.units = {unit, 1}});
  EXPECT_EQ(first.target.block->data, data);
  EXPECT_EQ(data, result_.data.data());
}

TEST_F(SharedItemTest, AShareCanBeSharedAgain) {
  SharedItem outer(item(), kWidth);
  const TowerItem take = outer.add(clip_, {.units = {4, 6}});
  SharedItem inner(take, kWidth);
  const TowerItem share = inner.add(clip_, {.units = {7, 3}, .counts = false});
  EXPECT_EQ(share.target.block->data, result_.data.data() + 28 * kRowBytes);
  EXPECT_EQ(share.target.block->rows, 12);
  EXPECT_FALSE(share.share.counts);
  set(share, GraphUse::kHit, 2, 5);
  inner.finish();
  EXPECT_EQ(take.target.result->rows, 24);
  EXPECT_EQ(result_.units_reused, 0) << "not before the outer one is finished";
  outer.finish();
  EXPECT_EQ(result_.units_reused, 2);
  EXPECT_EQ(result_.graph, GraphUse::kHit);
  EXPECT_EQ(result_.rows, 40);
}

TEST_F(SharedItemTest, TimesAndReusedUnitsAddUp) {
  SharedItem shared(item(), kWidth);
  result_.times = {.read_ms = 1, .decode_ms = 2, .resize_ms = 3};
  set(shared.add(clip_, {.units = {0, 5}}), GraphUse::kHit, 3, 10);
  set(shared.add(clip_, {.units = {5, 5}}), GraphUse::kHit, 1, 1);
  shared.finish();
  EXPECT_EQ(result_.units_reused, 4);
  EXPECT_EQ(result_.times.read_ms, 1);
  EXPECT_EQ(result_.times.resize_ms, 3);
  EXPECT_EQ(result_.times.pack_ms, 11);
  EXPECT_EQ(result_.times.encode_ms, 22);
  EXPECT_EQ(result_.times.output_ms, 33);
}

TEST_F(SharedItemTest, TheUseOfGraphsIsThatOfAllShares) {
  using enum GraphUse;
  EXPECT_EQ(use_of(std::vector{kHit, kHit}), kHit);
  EXPECT_EQ(use_of(std::vector{kMiss, kMiss}), kMiss);
  EXPECT_EQ(use_of(std::vector{kHit, kMiss}), kPartial);
  EXPECT_EQ(use_of(std::vector{kHit, kPartial}), kPartial);
  EXPECT_EQ(use_of(std::vector{kMiss}), kMiss);
}

}  // namespace
}  // namespace fovea
