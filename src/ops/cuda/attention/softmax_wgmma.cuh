#pragma once

// The softmax of the Hopper attention kernel (attention/wgmma_kernel.cuh), in registers, as WGMMA
// spreads 64 x kKeys scores over a warp group: that of bf16, and what both formats have in common.
//
// It is kept short. With t_j = s_j scale log2 e - o, weights are p_j = 2^t_j and the
// result is sum_j p_j v_j / sum_j p_j for any offset o. A running maximum would serve; a bound does
// too. The first step chooses o so that the largest t is -8, and a later step moves it only if some
// t reaches 0, which an AND of sign bits finds. The sums come out of p v, as those
// of a column of ones beside the values. Sums are f32; p is rounded to bf16 for numerator and
// denominator alike, the result once.

#include "ops/cuda/attention/wgmma_feed.cuh"
#include "ops/cuda/common/bf16.cuh"
#include "ops/cuda/common/lanes.cuh"
#include "ops/cuda/ptx/ptx.cuh"

namespace fovea::cuda::hopper_attention {

/// Where the exponents of a row start: t = score * factor - offset.
struct RowOffsets {
  float offset[2];   ///< of the two rows of a lane
  float rescale[2];  ///< what was summed before must be multiplied with it, if `moved`
  bool moved;        ///< the same for a whole warp
};

/// scores := t, and whether some t of the warp is not negative.
template <class P>
__device__ bool make_exponents(float factor, const RowOffsets& rows, typename P::Scores& scores) {
  unsigned signs[2] = {~0u, ~0u};
#pragma unroll
  for (int n = 0; n < P::kKeys / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      scores[n][i] = fmaf(scores[n][i], factor, -rows.offset[i / 2]);
      signs[i % 2] &= __float_as_uint(scores[n][i]);
    }
  }
  return __any_sync(kAllLanes, static_cast<int>(signs[0] & signs[1]) >= 0);
}

/// Moves the offsets of rows whose largest t is too large, or of all rows at the first step, so
/// that it becomes -kHeadroom.
template <class P>
__device__ void move_offsets(bool first, typename P::Scores& scores, RowOffsets& rows) {
  constexpr float kHeadroom = 8.0f;  // a sum may grow 256-fold before the next move
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float largest = fmaxf(scores[0][2 * r], scores[0][2 * r + 1]);
#pragma unroll
    for (int n = 1; n < P::kKeys / 8; ++n) {
      largest = fmaxf(largest, fmaxf(scores[n][2 * r], scores[n][2 * r + 1]));
    }
    largest = quad_max(largest);
    const float shift = first || largest >= 0.0f ? largest + kHeadroom : 0.0f;
    rows.offset[r] += shift;
    rows.rescale[r] = ptx::exp2_fast(-shift);
#pragma unroll
    for (int n = 0; n < P::kKeys / 8; ++n) {
      scores[n][2 * r] -= shift;
      scores[n][2 * r + 1] -= shift;
    }
  }
}

template <class P>
__device__ void rescale(const RowOffsets& rows, typename P::Out& out) {
#pragma unroll
  for (int n = 0; n <= P::kDim / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) out[n][i] *= rows.rescale[i / 2];
  }
}

/// Turns the scores of a step into weights.
template <class P>
__device__ void make_weights(bool first, float factor, typename P::Scores& scores,
                             RowOffsets& rows) {
  const bool too_large = make_exponents<P>(factor, rows, scores);
  rows.moved = first || too_large;
  if (rows.moved) move_offsets<P>(first, scores, rows);
#pragma unroll
  for (int n = 0; n < P::kKeys / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) scores[n][i] = ptx::exp2_fast(scores[n][i]);
  }
}

/// Rounds weights to the left operand of p v, here and not later: the scores of the next
/// step need the registers.
template <class P>
__device__ void round_weights(const typename P::Scores& scores, typename P::Weights& p) {
#pragma unroll
  for (int step = 0; step < P::kKeys / 16; ++step)
    pack_operand(scores[2 * step], scores[2 * step + 1], p[step]);
}

/// Zero, but known only when all weights have been rounded: they are not negative.
template <class P>
__device__ int zero_after(const typename P::Weights& p) {
  std::uint32_t bits = 0;
#pragma unroll
  for (int step = 0; step < P::kKeys / P::kWeightKeys; ++step) {
#pragma unroll
    for (int i = 0; i < 4; ++i) bits |= p[step][i];
  }
  return static_cast<int>(bits >> 31);
}

}  // namespace fovea::cuda::hopper_attention
