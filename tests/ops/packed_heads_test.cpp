// The layout of heads for the Hopper attention kernels: slabs of different sequences and heads lie
// apart, and keys of E4M3 are where a thread of WGMMA has their scores and multiplies their
// weights.
#include "ops/cuda/common/packed_heads.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace fovea::cuda {
namespace {

template <class Layout>
class PackedHeadsTest : public ::testing::Test {};

using Layouts = ::testing::Types<Slabs<HeadFormat::kBf16>, Slabs<HeadFormat::kE4M3>>;
TYPED_TEST_SUITE(PackedHeadsTest, Layouts);

/// Slabs that a sequence takes.
template <class Layout>
int slabs_of(int begin, int rows) {
  return rows == 0 ? 0 : (Layout::lead(begin) + rows + Layout::kRows - 1) / Layout::kRows;
}

TYPED_TEST(PackedHeadsTest, SequencesHaveSlabsOfTheirOwn) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    PackedHeads heads{
        .max_seqs = static_cast<int>(1 + random() % 20), .num_heads = 1, .head_dim = 8};
    int next = 0;  // the first slab that is free
    for (int sequence = 0; sequence < heads.max_seqs; ++sequence) {
      const int rows = static_cast<int>(random() % 50);
      const int first = TypeParam::first(sequence, heads.rows);
      EXPECT_GE(first, next);
      if (rows > 0) next = first + slabs_of<TypeParam>(heads.rows, rows);
      heads.rows += rows;
    }
    EXPECT_LE(next, TypeParam::most(heads));
  }
}

TYPED_TEST(PackedHeadsTest, HeadsAndOperandsLieOneAfterTheOther) {
  for (const int dim : {8, 64, 72, 80, 88, 96, 112, 128}) {
    PackedHeads heads{.max_seqs = 3,
                      .rows = 100,
                      .num_heads = 2,
                      .head_dim = dim,
                      .format = TypeParam::kE4M3 ? HeadFormat::kE4M3 : HeadFormat::kBf16};
    std::vector<std::byte> memory(packed_bytes(heads));
    heads.workspace = memory.data();
    const std::byte* next = memory.data();
    const auto expect_slabs = [&](const auto& place, int bytes) {
      for (int head = 0; head < heads.num_heads; ++head) {
        for (int slab = 0; slab < TypeParam::most(heads); ++slab) {
          EXPECT_EQ(place(heads, head, slab), next) << "head " << head << ", slab " << slab;
          next += bytes;
        }
      }
    };
    if (TypeParam::kE4M3) expect_slabs(TypeParam::queries, TypeParam::key_bytes(dim));
    expect_slabs(TypeParam::keys, TypeParam::key_bytes(dim));
    expect_slabs(TypeParam::values, TypeParam::value_bytes(dim));
    EXPECT_EQ(next, memory.data() + memory.size());
  }
}

TEST(PackedHeads, AThreadMultipliesTheWeightsThatItHas) {
  using Layout = Slabs<HeadFormat::kE4M3>;
  // Of 16 columns of scores, number q of four threads has two neighbours in each block of eight. Of
  // the left operand of the next product it gives four bytes, which stand for keys 4 q and on.
  for (int thread = 0; thread < 4; ++thread) {
    const int columns[] = {2 * thread, 2 * thread + 1, 8 + 2 * thread, 8 + 2 * thread + 1};
    for (int i = 0; i < 4; ++i) EXPECT_EQ(Layout::row_of_key(4 * thread + i), columns[i]);
  }
}

TEST(PackedHeads, RowsOfAnE4M3SlabFillIt) {
  using Layout = Slabs<HeadFormat::kE4M3>;
  constexpr int kDim = 72;
  std::vector<bool> taken(Layout::key_bytes(kDim) / 16);
  for (int block = 0; block < Layout::eight_keys_bytes(kDim) / Layout::kBlockBytes; ++block) {
    for (int key = 0; key < Layout::kRows; ++key) {
      const int at = Layout::key_offset(kDim, block, Layout::row_of_key(key));
      ASSERT_EQ(at % 16, 0);
      EXPECT_FALSE(taken[static_cast<std::size_t>(at / 16)])
          << "block " << block << ", key " << key;
      taken[static_cast<std::size_t>(at / 16)] = true;
    }
  }
  for (const bool is_taken : taken) EXPECT_TRUE(is_taken);
}

}  // namespace
}  // namespace fovea::cuda
