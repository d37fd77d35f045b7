#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "fovea/tower/ops/linear.h"
#include "ops/cuda/common/launch.cuh"
#include "ops/cuda/tower/blocks.h"

// Who computes what of a block, and where rows are on their way from one CTA to another.
//
// All CTAs work on all GEMMs, each on one tile. There are two kernels:
//
//   rows of the tower        64                             256
//   a tile                   64 rows x 40 columns           128 rows x 80 columns
//   of which a warp group    every other 32 summed dims     64 rows
//
//   qkv   a head of q, of k or of v, or half of its columns   all of the sum
//   attention   a few tiles of 16 queries of a head
//   proj  a cluster of 4 per tile                             a quarter of the sum each
//   fc1   a tile                                              all of the sum
//   fc2   as proj
//
// CTA j of a cluster owns a quarter of the rows of its tile of x: it adds up the quarters of
// sums, and keeps x in shared memory, as f32, from the first block of the tower to the last.
namespace fovea::cuda {

constexpr int kSplits = 4;           // CTAs of a cluster
constexpr int kFragmentBytes = 512;  // of 16 rows and 16 columns on their way

template <int kRowsOf, int kWidthOf, int kHeadsOf, int kHeadDimOf, int kMlpOf,
          ops::Activation kActivationOf, int kChunkTilesOf>
struct BlockSizes {
  static constexpr int kRows = kRowsOf;
  static constexpr int kWidth = kWidthOf;
  static constexpr int kHeads = kHeadsOf;
  static constexpr int kHeadDim = kHeadDimOf;
  static constexpr int kMlp = kMlpOf;
  static constexpr ops::Activation kActivation = kActivationOf;
  /// Of 64 summed dims of the weights of a tile, which a stage of the ring holds.
  static constexpr int kChunkTiles = kChunkTilesOf;

  /// Both warp groups multiply the same rows, each a half of the sum.
  static constexpr bool kGroupsSplitSums = kRows == 64;
  static constexpr int kTileRows = std::min(kRows, 128);
  static constexpr int kTileCols = kGroupsSplitSums ? 40 : 80;
  static constexpr int kTileSlices = kTileCols / 8;
  /// Slices of eight columns that the first warp group finishes; the second may have fewer.
  static constexpr int kFinished = kGroupsSplitSums ? (kTileSlices + 1) / 2 : kTileSlices;
  static constexpr int kRowParts = kRows / kTileRows;
  static constexpr int kRowTiles = kRows / 16;
  static constexpr int kRowTilesOfPart = kTileRows / 16;
  static constexpr int kOwnedRowTiles = kRowTilesOfPart / kSplits;

  static constexpr int kHeadSlices = kHeadDim / 8;
  static constexpr int kTilesOfHead = kGroupsSplitSums ? 2 : 1;
  static constexpr int kHeadSlicesOfTile = (kHeadSlices + kTilesOfHead - 1) / kTilesOfHead;
  static constexpr int kPairs = kHeadDim / 2;
  static constexpr int kHead16 = (kHeadDim + 15) / 16;

  static constexpr int kChunk = 64 * kChunkTiles;
  /// Of rows, that a consumer has in registers or on their way there: as many as fit.
  static constexpr int kHeldChunks = !kGroupsSplitSums ? 5 : kChunkTiles > 3 ? 2 : 3;
  static constexpr int kWidthChunks = kWidth / kChunk;
  static constexpr int kMlpChunks = (kMlp + kChunk - 1) / kChunk;
  /// Columns of fc1 with those of zeros that fill up the last chunk of fc2.
  static constexpr int kFilledMlp = kMlpChunks * kChunk;

  static constexpr int kQkvTiles = 3 * kHeads * kTilesOfHead;
  static constexpr int kGroups = (kWidth + kTileCols - 1) / kTileCols;
  static constexpr int kMlpTiles = (kFilledMlp + kTileCols - 1) / kTileCols;
  /// A cluster per group of columns and part of the rows.
  static constexpr int kCtas = kGroups * kRowParts * kSplits;
  /// CTAs that share the query tiles of a head, and the most that one of them gets.
  static constexpr int kCtasOfHead = std::min(kCtas / kHeads, kRowTiles);
  static constexpr int kQueryTiles = (kRowTiles + kCtasOfHead - 1) / kCtasOfHead;

  static_assert(kRows == 64 || kRows == 256);
  static_assert(std::max(kQkvTiles, kMlpTiles) <= kGroups * kSplits, "a tile per CTA");
  static_assert(kWidth == kHeads * kHeadDim && kWidth % kChunk == 0);
  static_assert(kWidthChunks >= kSplits && kMlpChunks >= kSplits, "every split has a part of sums");
  static_assert(kHeadDim % 8 == 0 && kHeadSlicesOfTile <= kTileSlices && kMlp % 8 == 0);
  static_assert(kTileCols % kWeightRows == 0);
  static_assert(kWidthChunks > kHeldChunks, "statistics arrive while rows are multiplied");

  static constexpr int kSliceBytes = kRows * 16 * 2;  // of 16 columns of rows on their way
  /// Of a row: two numbers per group of columns.
  static constexpr int kRowStatBytes = (kGroups + 7) / 8 * 8 * 8;

  // The mailbox, in bytes: rows of x before either norm, mixed rows, wide rows, heads, statistics.
  // Keys and values are there twice, for blocks in turn.
  static constexpr int kRowsBytes = kWidth / 16 * kSliceBytes;
  static constexpr int kWideBytes = (kMlpTiles * kTileCols + 15) / 16 * kSliceBytes;
  static constexpr int kHeadBytes = kHeads * kRowTiles * kHead16 * kFragmentBytes;
  static constexpr int kStatBytes = kRows * kRowStatBytes;
  static constexpr int kX1 = 0;
  static constexpr int kX2 = kX1 + kRowsBytes;
  static constexpr int kMixed = kX2 + kRowsBytes;
  static constexpr int kWide = kMixed + kRowsBytes;
  static constexpr int kQueries = kWide + kWideBytes;
  static constexpr int kKeys = kQueries + kHeadBytes;
  static constexpr int kValues = kKeys + 2 * kHeadBytes;
  static constexpr int kStats1 = kValues + 2 * kHeadBytes;
  static constexpr int kStats2 = kStats1 + kStatBytes;
  static constexpr int kMailBytes = kStats2 + kStatBytes;
};

/// Qwen3-VL from 8B on, Qwen3.5, Kimi-VL.
template <int kRows, int kChunkTiles>
using Blocks1152 = BlockSizes<kRows, 1152, 16, 72, 4304, ops::Activation::kGeluTanh, kChunkTiles>;
/// Qwen3-VL-2B and 4B.
template <int kRows, int kChunkTiles>
using Blocks1024 = BlockSizes<kRows, 1024, 16, 64, 4096, ops::Activation::kGeluTanh, kChunkTiles>;

}  // namespace fovea::cuda
