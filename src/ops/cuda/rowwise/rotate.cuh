#pragma once

#include "ops/cuda/common/bf16.cuh"

namespace fovea::cuda {

/// Cosines and sines of kWidth columns of one row; addresses are aligned to 16 bytes.
template <int kWidth>
struct Angles {
  float cosine[kWidth];
  float sine[kWidth];
  __device__ Angles(const float* cos_row, const float* sin_row) {
    load_floats(cos_row, cosine);
    load_floats(sin_row, sine);
  }
};

/// kWidth values x[j...] of the first half of a head and their partners x[j + half...].
template <int kWidth>
struct RotaryPair {
  float low[kWidth];
  float high[kWidth];
};

/// `x` is x[j], aligned to kWidth elements, and so is half.
template <int kWidth>
__device__ inline RotaryPair<kWidth> load_pair(const __nv_bfloat16* x, int half) {
  RotaryPair<kWidth> pair;
  load_floats(x, pair.low);
  load_floats(x + half, pair.high);
  return pair;
}

template <int kWidth>
__device__ inline void store_pair(const RotaryPair<kWidth>& pair, __nv_bfloat16* x, int half) {
  store_floats(x, pair.low);
  store_floats(x + half, pair.high);
}

/// One number of a rotated pair, from what it was and its partner:
///   y[j] = x[j] cos[j] - x[j + half] sin[j],  y[j + half] = x[j + half] cos[j] + x[j] sin[j],
/// the latter if it is the second of the two.
__device__ inline float rotated(float x, float partner, float cosine, float sine, bool second) {
  const float turned = partner * sine;
  return fmaf(x, cosine, second ? turned : -turned);
}

template <int kWidth>
__device__ inline void rotate(const Angles<kWidth>& angles, RotaryPair<kWidth>& pair) {
#pragma unroll
  for (int i = 0; i < kWidth; ++i) {
    const float low = pair.low[i];
    pair.low[i] = rotated(low, pair.high[i], angles.cosine[i], angles.sine[i], false);
    pair.high[i] = rotated(pair.high[i], low, angles.cosine[i], angles.sine[i], true);
  }
}

}  // namespace fovea::cuda
