#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "fovea/tower/ops/linear.h"
#include "ops/cuda/blocks/blocks.h"
#include "ops/cuda/common/launch.cuh"

// Who computes what of a block, and where rows are on their way from one thread block to another.
//
// All thread blocks work on all GEMMs, each on 64 rows x 40 columns:
//
//   qkv   2 per head of q, of k and of v: half of its columns     all of the sum
//   attention   4 per head: 16 queries each
//   proj  a cluster of 4 per 40 columns                           a quarter of the sum each
//   fc1   1 per 40 columns                                        all of the sum
//   fc2   as proj
//
// Block j of a cluster owns rows 16 j to 16 j + 15 of its columns of x: it adds up the quarters,
// and keeps x in registers, as f32, from the first block of the tower to the last.
namespace fovea::cuda {

constexpr int kBlockRows = 64;   // of x
constexpr int kTileCols = 40;    // of a GEMM
constexpr int kTileSlices = 5;   // of eight columns
constexpr int kFirstSlices = 3;  // of them, that the first warp group finishes
constexpr int kSplits = 4;       // blocks of a cluster, and of 16 rows each
constexpr int kRowTiles = kBlockRows / 16;
constexpr int kSliceBytes = kBlockRows * 16 * 2;  // of 16 columns of rows on their way
constexpr int kFragmentBytes = 512;               // of 16 rows of them
constexpr int kStatBytes = kBlockRows * 32 * 8;   // of a norm: two numbers per row and 40 columns

template <int kWidthOf, int kHeadsOf, int kHeadDimOf, int kMlpOf, ops::Activation kActivationOf,
          int kChunkTilesOf>
struct BlockSizes {
  static constexpr int kWidth = kWidthOf;
  static constexpr int kHeads = kHeadsOf;
  static constexpr int kHeadDim = kHeadDimOf;
  static constexpr int kMlp = kMlpOf;
  static constexpr ops::Activation kActivation = kActivationOf;
  /// Of 64 summed dims and kTileCols rows of weights, which a stage of the ring holds.
  static constexpr int kChunkTiles = kChunkTilesOf;

  static constexpr int kHeadSlices = kHeadDim / 8;
  static constexpr int kHalfSlices = (kHeadSlices + 1) / 2;  // of the first half of a head
  static constexpr int kPairs = kHeadDim / 2;
  static constexpr int kHead16 = (kHeadDim + 15) / 16;

  static constexpr int kChunk = 64 * kChunkTiles;
  static constexpr int kWidthChunks = kWidth / kChunk;
  static constexpr int kMlpChunks = (kMlp + kChunk - 1) / kChunk;
  /// Columns of fc1 with those of zeros that fill up the last chunk of fc2.
  static constexpr int kFilledMlp = kMlpChunks * kChunk;

  static constexpr int kQkvBlocks = 3 * kHeads * 2;
  static constexpr int kAttentionBlocks = kHeads * kRowTiles;
  static constexpr int kGroups = (kWidth + kTileCols - 1) / kTileCols;
  static constexpr int kOwners = kGroups * kSplits;
  static constexpr int kMlpBlocks = (kFilledMlp + kTileCols - 1) / kTileCols;
  static constexpr int kThreadBlocks =
      (std::max(std::max(kQkvBlocks, kAttentionBlocks), std::max(kOwners, kMlpBlocks)) + kSplits -
       1) /
      kSplits * kSplits;

  static_assert(kWidth == kHeads * kHeadDim && kWidth % kChunk == 0);
  static_assert(kWidthChunks >= kSplits && kMlpChunks >= kSplits, "every split has a part of sums");
  static_assert(kAttentionBlocks <= kOwners, "attention is computed before proj");
  static_assert(kHeadDim % 8 == 0 && kHalfSlices <= kTileSlices && kMlp % 8 == 0);
  static_assert(kGroups <= 32, "a row has room for 32 pairs of statistics");

  // The mailbox, in bytes: rows of x before either norm, mixed rows, wide rows, heads, statistics.
  static constexpr int kRowsBytes = kWidth / 16 * kSliceBytes;
  static constexpr int kWideBytes = (kMlpBlocks * kTileCols + 15) / 16 * kSliceBytes;
  static constexpr int kHeadBytes = kHeads * kRowTiles * kHead16 * kFragmentBytes;
  static constexpr int kX1 = 0;
  static constexpr int kX2 = kX1 + kRowsBytes;
  static constexpr int kMixed = kX2 + kRowsBytes;
  static constexpr int kWide = kMixed + kRowsBytes;
  static constexpr int kQueries = kWide + kWideBytes;
  static constexpr int kKeys = kQueries + kHeadBytes;
  static constexpr int kValues = kKeys + kHeadBytes;
  static constexpr int kStats1 = kValues + kHeads * kRowTiles * kHeadSlices * kFragmentBytes / 2;
  static constexpr int kStats2 = kStats1 + kStatBytes;
  static constexpr int kMailBytes = kStats2 + kStatBytes;
};

/// Qwen3-VL from 8B on, Qwen3.5, Kimi-VL.
using Blocks1152 = BlockSizes<1152, 16, 72, 4304, ops::Activation::kGeluTanh, 3>;
/// Qwen3-VL-2B and 4B.
using Blocks1024 = BlockSizes<1024, 16, 64, 4096, ops::Activation::kGeluTanh, 4>;

}  // namespace fovea::cuda
