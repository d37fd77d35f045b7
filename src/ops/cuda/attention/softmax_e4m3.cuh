#pragma once

// The softmax of the Hopper attention kernel for E4M3, without exponentials.
//
// The bits of a positive number of E4M3, as an integer b, are nearly its logarithm: it is 2^e (1 +
// m / 8) with 8 (e + 7) + m = b, and 1 + f is close to 2^f. So the weight 2^t is the integer
// nearest to 8 t + 56, which a multiply-add gives that adds 1024 as well: rounded to f16, this has
// the integer in its lowest bits. Two of them lie in a register, so the rest takes half an
// instruction for each. 1 + f exceeds 2^f by 0 to 6 %, by 4 % on average, which the sums of weights
// share: what is left is a ripple of 2 %, where rounding to E4M3 is 2.6 % (root mean squares).
// Below 2^-6 weights go to zero faster than 2^t, and they are zero from 2^-7 on.
//
// As for bf16 (softmax_wgmma.cuh), offsets are bounds: the first step chooses them so that the
// largest weight is about 2^4, and a later step moves them only if one reaches 2^8. They move by
// whole powers of two, so that sums can follow them exactly.
#include <cuda_fp16.h>

#include "ops/cuda/attention/softmax_wgmma.cuh"

namespace fovea::cuda::hopper_attention {

inline constexpr float kZeroWeight = 1024.0f;  ///< what the bits of 0 are found in
inline constexpr float kOctave = 8.0f;         ///< from the bits of a weight to its double's
inline constexpr float kWeightOfOne = 7.0f * kOctave;
inline constexpr float kAim = kZeroWeight + kWeightOfOne + 4.0f * kOctave;
inline constexpr float kLimit = kZeroWeight + kWeightOfOne + 8.0f * kOctave;

/// Two weights of neighbouring keys, of the first or the second row of a lane.
template <class P>
using WeightPairs = __half2[P::kKeys / 8][2];

/// Rounds scores that have been scaled to weights, and finds the largest of each row and lane.
template <class P>
__device__ void to_pairs(const typename P::Scores& scores, WeightPairs<P>& pairs,
                         __half2 (&largest)[2]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
#pragma unroll
    for (int n = 0; n < P::kKeys / 8; ++n) {
      pairs[n][r] = __floats2half2_rn(scores[n][2 * r], scores[n][2 * r + 1]);
      largest[r] = n == 0 ? pairs[n][r] : __hmax2(largest[r], pairs[n][r]);
    }
  }
}

/// Moves the offsets of rows whose largest score is too large, or of all rows at the first step.
template <class P>
__device__ void move_offsets_e4m3(bool first, typename P::Scores& scores, RowOffsets& rows) {
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    float largest = fmaxf(scores[0][2 * r], scores[0][2 * r + 1]);
#pragma unroll
    for (int n = 1; n < P::kKeys / 8; ++n)
      largest = fmaxf(largest, fmaxf(scores[n][2 * r], scores[n][2 * r + 1]));
    largest = quad_max(largest);
    const float octaves =
        first || largest >= kLimit ? rintf((largest - kAim) * (1.0f / kOctave)) : 0.0f;
    rows.offset[r] += octaves * kOctave;
    rows.rescale[r] = ptx::exp2_fast(-octaves);
#pragma unroll
    for (int n = 0; n < P::kKeys / 8; ++n) {
      scores[n][2 * r] -= octaves * kOctave;
      scores[n][2 * r + 1] -= octaves * kOctave;
    }
  }
}

/// Turns the scores of a step into weights: their bits, in the order of the left operand of the
/// next product. Bytes of a register are neighbouring keys for WGMMA; here they are two of a block
/// of eight and two of the next: Slabs::row_of_key has put the keys there. @param factor of scores,
/// 8 log2 e included.
template <class P>
__device__ void make_e4m3_weights(bool first, float factor, typename P::Scores& scores,
                                  RowOffsets& rows, typename P::Weights& p) {
#pragma unroll
  for (int n = 0; n < P::kKeys / 8; ++n) {
#pragma unroll
    for (int i = 0; i < 4; ++i) scores[n][i] = fmaf(scores[n][i], factor, -rows.offset[i / 2]);
  }
  WeightPairs<P> pairs;
  __half2 largest[2];
  to_pairs<P>(scores, pairs, largest);
  const __half2 of_lane = __hmax2(largest[0], largest[1]);
  const __half limit = __float2half_rn(kLimit);
  rows.moved = first || __any_sync(kAllLanes,
                                   __hge(__hmax(__low2half(of_lane), __high2half(of_lane)), limit));
  if (rows.moved) {
    move_offsets_e4m3<P>(first, scores, rows);
    to_pairs<P>(scores, pairs, largest);
  }
  const __half2 zero = __float2half2_rn(kZeroWeight);
#pragma unroll
  for (int n = 0; n < P::kKeys / 8; n += 2) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const __half2 left = __hmax2(pairs[n][r], zero);
      const __half2 right = __hmax2(pairs[n + 1][r], zero);
      p[n / 4][n % 4 + r] = __byte_perm(reinterpret_cast<const std::uint32_t&>(left),
                                        reinterpret_cast<const std::uint32_t&>(right), 0x6420);
    }
  }
}

}  // namespace fovea::cuda::hopper_attention
