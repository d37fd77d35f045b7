#pragma once

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "ops/cuda/common/lanes.cuh"
#include "ops/cuda/tower/sizes.h"

// Shared memory of a CTA, and where a thread stands in it.
namespace fovea::cuda {

constexpr int kConsumers = 2 * kGroup;  // multiply and do all else
constexpr int kConsumerWarps = kConsumers / kWarp;
constexpr int kCtaThreads = 3 * kGroup;          // and one that fetches weights
constexpr int kBoxBytes = kWeightRows * 64 * 2;  // of 64 summed dims of weights
constexpr int kConsumerBarrier = 1;              // named barriers: of all consumers,
constexpr int kOwnerBarrier = 2;                 // and of those that own a row tile: 2 or 3

template <class Sizes>
struct CtaShared {
  /// Of 16 keys, of a warp that has some, and these warps.
  static constexpr int kKeyTiles = std::max(1, Sizes::kRowTiles / kConsumerWarps);
  static constexpr int kKeyWarps = Sizes::kRowTiles / kKeyTiles;

  /// Sums of one warp group for the other, of two GEMMs in turn.
  struct Exchange {
    alignas(16) float4 sums[2][Sizes::kTileSlices][Sizes::kRowTilesOfPart][kWarp];
  };
  struct Nothing {};
  std::conditional_t<Sizes::kGroupsSplitSums, Exchange, Nothing> exchange;
  /// What the owner of rows adds up, four numbers per thread and slice.
  alignas(16) float4 x[Sizes::kOwnedRowTiles][Sizes::kTileSlices][kWarp];
  /// Quarters of sums from all CTAs of the cluster, as packets.
  alignas(16) uint4 parts[kSplits][Sizes::kOwnedRowTiles][Sizes::kTileSlices][kWarp];
  /// Of attention: weights of each warp's keys, their largest score and the sum of their weights
  /// relative to that, and what they have mixed of the values of these keys.
  alignas(16) uint4 weights[Sizes::kQueryTiles][kKeyWarps][kKeyTiles][kWarp];
  alignas(16) float maximum[Sizes::kQueryTiles][16][kKeyWarps];
  alignas(16) float sum[Sizes::kQueryTiles][16][kKeyWarps];
  alignas(16) float4 mixed[kKeyWarps][Sizes::kHeadSlices][kWarp];
  /// BlockWeights::constants of the columns of a tile, for each warp.
  alignas(16) float2 constants[kConsumerWarps][Sizes::kTileCols];
  float2 angle[Sizes::kTileRows][Sizes::kPairs];  // cosine and sine
  float2 norm[2][Sizes::kTileRows];               // mean * rstd, rstd
  float2 stat[2][kConsumerWarps][16];             // of two norms, and 16 rows
  int2 sequence[Sizes::kRows];                    // first row and end of a row's sequence
};

template <class Sizes>
struct CtaMemory {
  static constexpr int kTileBytes = Sizes::kTileCols / kWeightRows * kBoxBytes;
  static constexpr int kStageBytes = Sizes::kChunkTiles * kTileBytes;
  static constexpr int kStages = static_cast<int>((kHopperSharedBytes - sizeof(CtaShared<Sizes>)) /
                                                  (kStageBytes + 2 * sizeof(std::uint64_t)));
  alignas(1024) std::byte ring[kStages][kStageBytes];
  CtaShared<Sizes> shared;
  std::uint64_t full[kStages];
  std::uint64_t empty[kStages];
};

/// Where a consumer stands.
template <class Sizes>
struct Consumer {
  int group;     ///< warp group
  int row_tile;  ///< of the tile's rows: 16 row_tile and on
  int warp;
  int lane;
  int row;  ///< of the tile, that its sums are of, as is row + 8
  int col;  ///< of eight, that its sums are of, as is col + 1

  /// Read from the hardware by every call, so that nothing that is derived from it stays in
  /// registers between calls: addresses of all places of the mailbox would not fit.
  __device__ static Consumer self() {
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    const int tile = thread / kWarp % Sizes::kRowTilesOfPart;
    const int lane = thread % kWarp;
    return {.group = thread / kGroup,
            .row_tile = tile,
            .warp = thread / kWarp,
            .lane = lane,
            .row = 16 * tile + lane / 4,
            .col = 2 * (lane % 4)};
  }
  /// The first of the slices of a tile that its group finishes.
  [[nodiscard]] __device__ int first_slice() const {
    return Sizes::kGroupsSplitSums ? group * Sizes::kFinished : 0;
  }
};

/// Offset, among rows on their way, of eight columns: of the fragment of row tile 0.
template <class Sizes>
__device__ inline int slice_offset(int slice) {
  return slice / 2 * Sizes::kSliceBytes + slice % 2 * static_cast<int>(sizeof(std::uint64_t));
}
/// The same of a slice of a tile of columns.
template <class Sizes>
__device__ inline int slice_offset(int tile, int slice) {
  constexpr int kSlices = Sizes::kTileSlices;
  if constexpr (kSlices % 2 == 0)
    return tile * (kSlices / 2 * Sizes::kSliceBytes) + slice_offset<Sizes>(slice);
  return slice_offset<Sizes>(tile * kSlices + slice);
}

}  // namespace fovea::cuda
