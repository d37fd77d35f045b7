#pragma once

#include <cstdint>

#include "ops/cuda/ptx/ptx.cuh"
#include "ops/cuda/tower/role.cuh"
#include "ops/cuda/tower/shared.cuh"

// BlockWeights::constants of the columns of a tile. Each warp has its own, so warps need not wait
// for one another.
namespace fovea::cuda {

template <class Sizes>
struct ColumnConstants {
  CtaMemory<Sizes>& memory;
  const Consumer<Sizes>& self;

  /// Starts copies of those of the tile that begins with `column`.
  __device__ void fetch(const float2* column) const {
    constexpr int kColumns = 16 / sizeof(float2);  // that a thread copies at once
    __syncwarp();                                  // after all have read those before
    for (int i = kColumns * self.lane; i < Sizes::kTileCols; i += kColumns * kWarp)
      ptx::copy_async(ptx::shared_address(&memory.shared.constants[self.warp][i]), column + i,
                      true);
    ptx::commit_copies();
  }
  __device__ void fetch(const BlockWeights& weights, int gemm, const CtaRole<Sizes>& role) const {
    const int column =
        gemm == kQkv
            ? (role.part() * Sizes::kHeads + role.head()) * Sizes::kHeadDim + role.head_column()
            : Sizes::kTileCols * (gemm == kFc1 ? role.tile() : role.group());
    fetch(weights.constants[gemm] + column);
  }
  __device__ static void wait() {
    ptx::wait_copies<0>();
    __syncwarp();
  }
  /// First and second of either of the thread's columns of a slice.
  [[nodiscard]] __device__ float4 of_slice(int slice) const {
    return *reinterpret_cast<const float4*>(
        &memory.shared.constants[self.warp][8 * slice + self.col]);
  }
};

}  // namespace fovea::cuda
