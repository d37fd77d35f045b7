#pragma once

#include <cstdint>

#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/lanes.cuh"
#include "ops/cuda/ptx/ptx.cuh"

// The second half of a step of attention with the tensor-core instructions of one warp: from the
// scores of 16 queries and kKeys keys to weights, then to the weighted sums of values. Scores are
// in the layout of the instruction's result, [kKeys / 8][4]: lane l has rows l / 4 and l / 4 + 8,
// and keys 2 (l % 4) and the next of each block of eight. Source: Dao, "FlashAttention-2",
// arXiv:2307.08691, algorithm 1.
namespace fovea::cuda {

/// The running sums: `out`, and for the two rows of a lane the maximum that they are relative to
/// and the lane's part of the sum of weights.
template <int kDim>
struct SoftmaxSums {
  float out[kDim / 8][4] = {};
  float maximum[2] = {-INFINITY, -INFINITY};
  float sum[2] = {};
};

/// Turns scores into weights, 2^((score - maximum) factor), relative to the new maximum, and
/// rescales what was summed before.
template <int kDim, int kBlocks>
__device__ void update_softmax(float factor, float (&scores)[kBlocks][4], SoftmaxSums<kDim>& sums) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float maximum = sums.maximum[r];
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) {
      maximum = fmaxf(maximum, fmaxf(scores[n][2 * r], scores[n][2 * r + 1]));
    }
    maximum = quad_max(maximum);
    const float rescale = ptx::exp2_fast((sums.maximum[r] - maximum) * factor);
    sums.maximum[r] = maximum;
    sums.sum[r] *= rescale;
#pragma unroll
    for (int n = 0; n < kDim / 8; ++n) {
      sums.out[n][2 * r] *= rescale;
      sums.out[n][2 * r + 1] *= rescale;
    }
    const float offset = maximum * factor;
#pragma unroll
    for (int n = 0; n < kBlocks; ++n) {
#pragma unroll
      for (int i = 2 * r; i < 2 * r + 2; ++i) {
        scores[n][i] = ptx::exp2_fast(scores[n][i] * factor - offset);
        sums.sum[r] += scores[n][i];
      }
    }
  }
}

/// sums.out[16 x kDim] += weights v; v: [8 * kBlocks][kStride >= kDim] in shared memory.
template <int kDim, int kBlocks, int kStride>
__device__ void multiply_values(const float (&weights)[kBlocks][4],
                                const __nv_bfloat16 (&v)[8 * kBlocks][kStride],
                                SoftmaxSums<kDim>& sums) {
  const int key = lane_index() % 16;
  const int dim = lane_index() / 16 * 8;
#pragma unroll
  for (int step = 0; step < kBlocks / 2; ++step) {
    Bf16Pair p[4];
    pack_operand(weights[2 * step], weights[2 * step + 1], p);
#pragma unroll
    for (int pair = 0; pair < kDim / 16; ++pair) {
      std::uint32_t values[4];
      ptx::load_matrices_transposed(ptx::shared_address(&v[step * 16 + key][pair * 16 + dim]),
                                    values);
      ptx::multiply_add(sums.out[2 * pair], p, values[0], values[1]);
      ptx::multiply_add(sums.out[2 * pair + 1], p, values[2], values[3]);
    }
  }
}

}  // namespace fovea::cuda
