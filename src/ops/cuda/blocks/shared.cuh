#pragma once

#include <cstdint>

#include "ops/cuda/blocks/sizes.h"
#include "ops/cuda/common/lanes.cuh"

// Shared memory of a thread block, and where a thread stands in it.
namespace fovea::cuda {

constexpr int kConsumers = 2 * kGroup;          // multiply and do all else
constexpr int kBlockThreads = 3 * kGroup;       // and one that fetches weights
constexpr int kTileBytes = kTileCols * 64 * 2;  // of 64 summed dims of weights
constexpr int kConsumerBarrier = 1;             // named barriers: of all consumers,
constexpr int kOwnerBarrier = 2;                // of the two warps that own rows,
constexpr int kAttentionBarrier = 3;            // of the first warp group

template <class Sizes>
struct BlockShared {
  /// Sums of one warp group for the other, of two GEMMs in turn.
  alignas(16) float4 exchange[2][kTileSlices][kRowTiles][kWarp];
  /// Quarters of sums from the other blocks of the cluster, as packets: of proj and of fc2.
  alignas(16) uint4 parts[2][kSplits - 1][kTileSlices][kWarp];
  /// Of attention: outputs of 16 keys each, with maxima and sums of their weights.
  alignas(16) float4 mixed[kRowTiles][Sizes::kHeadSlices][kWarp];
  float maximum[kRowTiles][16];
  float sum[kRowTiles][16];
  float2 angle[kBlockRows][Sizes::kPairs];  // cosine and sine
  float2 norm[2][kBlockRows];               // mean * rstd, rstd
  float2 stat[2][16];                       // of the second owner for the first
  int2 sequence[kBlockRows];                // first row and end of a row's sequence
};

template <class Sizes>
struct BlockMemory {
  static constexpr int kStageBytes = Sizes::kChunkTiles * kTileBytes;
  static constexpr int kStages =
      static_cast<int>((kHopperSharedBytes - sizeof(BlockShared<Sizes>)) /
                       (kStageBytes + 2 * sizeof(std::uint64_t)));
  alignas(1024) std::byte ring[kStages][kStageBytes];
  BlockShared<Sizes> shared;
  std::uint64_t full[kStages];
  std::uint64_t empty[kStages];
};

static_assert(sizeof(BlockMemory<Blocks1152>) <= kHopperSharedBytes);
static_assert(sizeof(BlockMemory<Blocks1024>) <= kHopperSharedBytes);

/// Where a consumer stands.
struct Consumer {
  int group;     ///< warp group
  int row_tile;  ///< warp of the group: rows 16 row_tile and on
  int lane;
  int row;  ///< that its sums are of, as is row + 8
  int col;  ///< of eight, that its sums are of, as is col + 1

  __device__ static Consumer self() {
    const auto thread = static_cast<int>(threadIdx.x);
    const int tile = thread / kWarp % kRowTiles;
    const int lane = thread % kWarp;
    return {.group = thread / kGroup,
            .row_tile = tile,
            .lane = lane,
            .row = 16 * tile + lane / 4,
            .col = 2 * (lane % 4)};
  }
  /// The first of the slices of a tile that its group finishes.
  [[nodiscard]] __device__ int first_slice() const { return group * kFirstSlices; }
};

/// Offset, among rows on their way, of eight columns: of the fragment of row tile 0.
__device__ inline int slice_offset(int slice) {
  return slice / 2 * kSliceBytes + slice % 2 * static_cast<int>(sizeof(std::uint64_t));
}

}  // namespace fovea::cuda
