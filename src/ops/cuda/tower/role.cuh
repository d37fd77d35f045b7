#pragma once

#include "ops/cuda/tower/blocks.h"
#include "ops/cuda/tower/sizes.h"

// The work of a CTA, as numbers of tiles, rows and columns.
namespace fovea::cuda {

/// What a CTA computes of every block of the tower.
template <class Sizes>
struct CtaRole {
  int number;  ///< of the CTA

  /// Read from the hardware by every call, as Consumer::self().
  __device__ static CtaRole self() {
    int number;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(number));
    return {number};
  }
  /// Of all its GEMMs. Neighbours have the same, and read the same rows at about the same time,
  /// which the L2 cache likes.
  [[nodiscard]] __device__ int row_part() const { return number / (kSplits * Sizes::kGroups); }
  /// Of columns, of proj and fc2.
  [[nodiscard]] __device__ int group() const { return number / kSplits % Sizes::kGroups; }
  /// Of the sums of a group, and of the rows of x that the CTA owns.
  [[nodiscard]] __device__ int split() const { return number % kSplits; }
  /// Of columns: of fc1, and of qkv all tiles of queries, then those of keys, then of values.
  [[nodiscard]] __device__ int tile() const { return kSplits * group() + split(); }
  /// Queries, keys, values.
  [[nodiscard]] __device__ int part() const {
    return tile() / (Sizes::kTilesOfHead * Sizes::kHeads);
  }
  [[nodiscard]] __device__ int head() const { return tile() / Sizes::kTilesOfHead % Sizes::kHeads; }
  /// First of the head's columns.
  [[nodiscard]] __device__ int head_column() const {
    return tile() % Sizes::kTilesOfHead * Sizes::kHeadSlicesOfTile * 8;
  }
  [[nodiscard]] __device__ bool takes_part(int gemm) const {
    if (gemm == kQkv) return tile() < Sizes::kQkvTiles;
    if (gemm == kFc1) return tile() < Sizes::kMlpTiles;
    return true;
  }
  /// First of its tiles of 16 rows.
  [[nodiscard]] __device__ int first_row_tile() const {
    return row_part() * Sizes::kRowTilesOfPart;
  }
  /// Chunks of the sum before those of split `i`, of `all`.
  [[nodiscard]] __device__ static int chunks_before(int all, int i) {
    return i * (all / kSplits) + min(i, all % kSplits);
  }
  [[nodiscard]] __device__ int first_chunk(int gemm) const {
    if (gemm == kQkv || gemm == kFc1) return 0;
    return chunks_before(gemm == kProj ? Sizes::kWidthChunks : Sizes::kMlpChunks, split());
  }
  [[nodiscard]] __device__ int chunks(int gemm) const {
    if (gemm == kQkv || gemm == kFc1) return Sizes::kWidthChunks;
    const int all = gemm == kProj ? Sizes::kWidthChunks : Sizes::kMlpChunks;
    return chunks_before(all, split() + 1) - chunks_before(all, split());
  }
  /// Slices of eight columns of the group; the last one may have fewer.
  [[nodiscard]] __device__ int owned_slices() const {
    return min(Sizes::kTileSlices, Sizes::kWidth / 8 - group() * Sizes::kTileSlices);
  }
};

}  // namespace fovea::cuda
