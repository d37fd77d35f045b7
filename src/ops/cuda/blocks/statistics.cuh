#pragma once

#include <cstdint>

#include "ops/cuda/blocks/packet.cuh"
#include "ops/cuda/blocks/shared.cuh"

// Mean and variance of rows of x. The owners of 40 columns publish the sum of theirs and the sum of
// their squares, packets of two f32 side by side for each row; whoever multiplies these rows adds
// them up. In f32 a mean of a hundred deviations costs the variance 1e-3 of itself, where rows that
// are stored as bf16 have lost a tenth of a deviation already.
namespace fovea::cuda {

template <class Sizes>
class RowStatistics {
 public:
  /// `mail`: of this norm.
  __device__ explicit RowStatistics(const std::byte* mail)
      : from_(mail + static_cast<int>(threadIdx.x) / 4 * kRowBytes +
              static_cast<int>(threadIdx.x) % 4 * static_cast<int>(sizeof(Packets))) {}

  /// Four threads share a row.
  __device__ void load() {
#pragma unroll
    for (int i = 0; i < kLoads; ++i) parts_[i] = load_packets(from_ + i * kLoadStep);
  }
  /// After load(): waits for all, and stores (mean * rstd, rstd) of every row. For all consumers.
  __device__ void store(std::uint32_t tag, float epsilon, float2 (&norm)[kBlockRows]) {
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
    constexpr float kShare = 1.0f / Sizes::kWidth;
    const float mean = quad_sum(sum) * kShare;
    const float variance = fmaxf(quad_sum(squares) * kShare - mean * mean, 0.0f);
    const float rstd = rsqrtf(variance + epsilon);
    if (threadIdx.x % 4 == 0) norm[threadIdx.x / 4] = make_float2(mean * rstd, rstd);
  }

  /// Publishes the statistics of a warp's part of 16 rows of x, together with those of the other
  /// warp that owns columns of them.
  __device__ static void publish(std::byte* mail, const float (&x)[kFirstSlices][4], int slices,
                                 int group_of_columns, std::uint32_t tag, float2 (&other)[16],
                                 const Consumer& self) {
    float sum[2] = {};
    float squares[2] = {};
#pragma unroll
    for (int i = 0; i < kFirstSlices; ++i) {
      if (i >= slices) continue;
#pragma unroll
      for (int value = 0; value < 4; ++value) {
        sum[value / 2] += x[i][value];
        squares[value / 2] += x[i][value] * x[i][value];
      }
    }
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      sum[row] = quad_sum(sum[row]);
      squares[row] = quad_sum(squares[row]);
      if (self.group == 1 && self.lane % 4 == 0)
        other[self.lane / 4 + 8 * row] = make_float2(sum[row], squares[row]);
    }
    ptx::named_barrier_sync(kOwnerBarrier, 2 * kWarp);
    if (self.group == 1 || self.lane % 4 != 0) return;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const float2 rest = other[self.lane / 4 + 8 * row];
      store_packet(mail + (self.row + 8 * row) * kRowBytes +
                       group_of_columns * static_cast<int>(sizeof(Packet)),
                   tagged(sum[row] + rest.x, tag), __float_as_uint(squares[row] + rest.y));
    }
  }

 private:
  static constexpr int kRowBytes = kStatBytes / kBlockRows;
  static constexpr int kLoadStep = 4 * sizeof(Packets);  // of four threads
  static constexpr int kLoads = (Sizes::kGroups + 7) / 8;
  /// Whether somebody owns the columns of a packet.
  [[nodiscard]] __device__ static bool exists(int load, int side) {
    if (8 * load + 7 < Sizes::kGroups) return true;
    return 8 * load + 2 * (static_cast<int>(threadIdx.x) % 4) + side < Sizes::kGroups;
  }

  const std::byte* from_;
  Packets parts_[kLoads];
};

}  // namespace fovea::cuda
