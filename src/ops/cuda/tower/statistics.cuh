#pragma once

#include <cstdint>

#include "ops/cuda/tower/packet.cuh"
#include "ops/cuda/tower/shared.cuh"

// Mean and variance of rows of x. The owners of a tile publish the sum of theirs and the sum of
// their squares, packets of two f32 side by side for each row; whoever multiplies these rows adds
// them up. In f32 a mean of a hundred deviations costs the variance 1e-3 of itself, where rows that
// are stored as bf16 have lost a tenth of a deviation already.
namespace fovea::cuda {

template <class Sizes>
class RowStatistics {
 public:
  /// `mail`: of this norm, the first row of the tile.
  __device__ explicit RowStatistics(const std::byte* mail)
      : from_(mail + static_cast<int>(threadIdx.x) / kLanes * Sizes::kRowStatBytes +
              static_cast<int>(threadIdx.x) % kLanes * static_cast<int>(sizeof(Packets))) {}

  __device__ void load() {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) parts_[i] = load_packets(from_ + i * kLoadStep);
  }
  /// After load(): waits for all, and stores (mean * rstd, rstd) of every row. For all consumers,
  /// which see them behind a barrier of those that share rows.
  __device__ void store(std::uint32_t tag, float epsilon, float2 (&norm)[Sizes::kTileRows]) {
    while (true) {
      Arrivals arrivals(tag);
#pragma unroll
      for (int i = 0; i < kLoads; ++i) {
        arrivals.expect(exists(i, 0) ? parts_[i].word[0] : tag);
        arrivals.expect(exists(i, 1) ? parts_[i].word[2] : tag);
      }
      if (arrivals.complete()) break;
      load();
    }
    float sum = 0;
    float squares = 0;
#pragma unroll
    for (int i = 0; i < kLoads; ++i) {
#pragma unroll
      for (int side = 0; side < 2; ++side) {
        sum += exists(i, side) ? __uint_as_float(parts_[i].word[2 * side]) : 0;
        squares += exists(i, side) ? __uint_as_float(parts_[i].word[2 * side + 1]) : 0;
      }
    }
#pragma unroll
    for (int offset = 1; offset < kLanes; offset *= 2) {
      sum += __shfl_xor_sync(kAllLanes, sum, offset);
      squares += __shfl_xor_sync(kAllLanes, squares, offset);
    }
    constexpr float kShare = 1.0f / Sizes::kWidth;
    const float mean = sum * kShare;
    const float variance = fmaxf(squares * kShare - mean * mean, 0.0f);
    const float rstd = rsqrtf(variance + epsilon);
    if (threadIdx.x % kLanes == 0) norm[threadIdx.x / kLanes] = make_float2(mean * rstd, rstd);
    // Without a split of sums a warp multiplies the very rows of which it has the statistics.
    __syncwarp();
  }

 private:
  static constexpr int kLanes = kConsumers / Sizes::kTileRows;  // that share a row
  static constexpr int kLoadStep = kLanes * static_cast<int>(sizeof(Packets));
  static constexpr int kLoads = (Sizes::kGroups + 2 * kLanes - 1) / (2 * kLanes);
  /// Whether somebody owns the columns of a packet.
  [[nodiscard]] __device__ static bool exists(int load, int side) {
    if (2 * kLanes * (load + 1) <= Sizes::kGroups) return true;
    return 2 * (kLanes * load + static_cast<int>(threadIdx.x) % kLanes) + side < Sizes::kGroups;
  }

  const std::byte* from_;
  Packets parts_[kLoads] = {};  // zeros: see multiply_rows
};

}  // namespace fovea::cuda
