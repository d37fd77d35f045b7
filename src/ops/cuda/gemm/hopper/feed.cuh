#pragma once

// The copying warp of our GEMM kernels (gemm/hopper/kernel.cuh).

#include "ops/cuda/common/launch.cuh"
#include "ops/cuda/gemm/hopper/plan.cuh"
#include "ops/cuda/ptx/ptx.cuh"
#include "ops/cuda/ptx/tma.cuh"

namespace fovea::cuda::gemm {

/// Starts the copies. One lane of the warp acts; the others come along, because the compiler makes
/// better code where a warp stays together.
template <class P>
class Copier {
 public:
  __device__ Copier(const HopperGemmWork& work, Shared<P>& shared)
      : w_(work), s_(shared), cta_(work), slice_(work, cta_.slice), elected_(ptx::elect_lane()) {}

  __device__ void run() {
    const Tiles<P> tiles(w_, cta_);
    const int early = min(P::kStages, slice_.count);
    const int row = ptx::keep(tiles.row(tiles.first()));
    const int col = ptx::keep(tiles.col(tiles.first()));
    for (int b = 0; b < early; ++b) copy_weight(b, b, col);
    if (tiles.in_first_row(tiles.first())) {
      const int ahead = min(slice_.count, early + kAheadBytes / P::kWeightBytes);
#pragma unroll 1
      for (int b = early; b < ahead; ++b)
        if (elected_) ptx::prefetch_tile(w_.weight, column(b), first_weight(col));
    }
    const int num_tiles = tiles.count(live_rows_of(w_));
    wait_before_matmul();
    // Also if there is no tile: rows beyond the live ones exist, and stages are full with them.
    for (int b = 0; b < early; ++b) copy_x(b, b, row);
    if (tiles.first() >= num_tiles) {  // nothing to do; but copies must not outlive the CTA
      for (int b = 0; b < early; ++b) wait_for(s_.full[b], 0);
      return;
    }
    auto block = static_cast<unsigned>(early);
    int first = early;
    for (int tile = tiles.first(); tile < num_tiles; tile += tiles.step()) {
      const int tile_row = ptx::keep(tiles.row(tile));
      const int tile_col = ptx::keep(tiles.col(tile));
#pragma unroll 1
      for (int b = first; b < slice_.count; ++b, ++block) {
        const auto at = P::At::of(block);
        wait_for(s_.empty[at.stage], at.phase ^ 1);
        copy_x(at.stage, b, tile_row);
        copy_weight(at.stage, b, tile_col);
      }
      first = 0;
      if constexpr (P::kResidualInStages) {
        for (int c = 0; w_.residual != nullptr && c < P::kResidualStages; ++c, ++block)
          copy_residual(P::At::of(block), tile_row, tile_col + c * kBlockCols);
      }
    }
    if constexpr (P::kProducers > 1) wait_for_readers(block);
  }

 private:
  static constexpr int kXRows = P::kRows / P::kColsOfTiles;  // that this CTA loads
  static constexpr int kWeightRows = P::kCols / P::kRowsOfTiles;

  /// First column of x of block `b` of the slice.
  [[nodiscard]] __device__ int column(int b) const { return (slice_.first + b) * P::kSumCols; }
  /// First of the weights that this CTA loads for the tile whose columns begin at `col`.
  [[nodiscard]] __device__ int first_weight(int col) const { return col + cta_.row * kWeightRows; }

  __device__ void copy_weight(int stage, int b, int col) const {
    if (!elected_) return;
    const std::byte* const to = s_.weight[stage] + cta_.row * kWeightRows * kRowBytes;
    const std::uint32_t full = ptx::shared_address(&s_.full[stage]);
    if constexpr (P::kRowsOfTiles > 1) {
      ptx::copy_tile_multicast(ptx::shared_address(to), w_.weight, column(b), first_weight(col),
                               full, cta_.ctas_of_col());
    } else {
      ptx::copy_tile(ptx::shared_address(to), w_.weight, column(b), first_weight(col), full);
    }
  }
  /// Waits until other CTAs have released the last stages of all `blocks`, too: a CTA must not
  /// end before the last arrival at its barriers.
  __device__ void wait_for_readers(unsigned blocks) const {
    const unsigned stages = min(blocks, static_cast<unsigned>(P::kStages));
    for (unsigned block = blocks - stages; block < blocks; ++block) {
      const auto at = P::At::of(block);
      wait_for(s_.empty[at.stage], at.phase);
    }
  }
  /// Also says how much the stage will receive, which may be after it has.
  __device__ void copy_x(int stage, int b, int row) const {
    if (!elected_) return;
    const std::byte* const to = s_.x[stage] + cta_.col * kXRows * kRowBytes;
    const int first = row + cta_.col * kXRows;
    const std::uint32_t full = ptx::shared_address(&s_.full[stage]);
    ptx::barrier_arrive_expecting(full, P::kXBytes + P::kWeightBytes);
    if constexpr (P::kColsOfTiles > 1) {
      ptx::copy_tile_multicast(ptx::shared_address(to), w_.x, column(b), first, full,
                               cta_.ctas_of_row());
    } else {
      ptx::copy_tile(ptx::shared_address(to), w_.x, column(b), first, full);
    }
  }

  /// 64 columns of the residual, to the place of x.
  __device__ void copy_residual(typename P::At at, int row, int col) const {
    wait_for(s_.empty[at.stage], at.phase ^ 1);
    if (!elected_) return;
    const std::uint32_t full = ptx::shared_address(&s_.full[at.stage]);
    ptx::barrier_arrive_expecting(full, P::kXBytes);
    ptx::copy_tile(ptx::shared_address(s_.x[at.stage]), w_.residual_map, col, row, full);
  }

  const HopperGemmWork& w_;
  Shared<P>& s_;
  CtaInCluster<P> cta_;
  SplitKSlice slice_;
  bool elected_;
};

}  // namespace fovea::cuda::gemm
