#pragma once

// Point-wise activations of values in registers (ops/linear.h has their formulas).

#include "ops/cuda/ptx/ptx.cuh"
#include "ops/linear.h"

namespace fovea::cuda {

/// x / (1 + exp(-x (linear + cubic x^2))). Exponentials and reciprocals are the fast ones: their
/// error is far below the rounding of the result.
struct Gate {
  float linear;
  float cubic;
  __device__ float operator()(float x) const {
    const float exponent = x * fmaf(-ptx::kLog2E * cubic, x * x, -ptx::kLog2E * linear);
    return x * ptx::reciprocal_fast(1.0f + ptx::exp2_fast(exponent));
  }
};
/// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) = x / (1 + exp(-2 sqrt(2 / pi) (...)))
inline constexpr Gate kGeluTanhGate{1.5957691216057308f, 0.044715f * 1.5957691216057308f};
inline constexpr Gate kQuickGeluGate{1.702f, 0.0f};
inline constexpr Gate kSiluGate{1.0f, 0.0f};

/// 0.5 x (1 + erf(x / sqrt(2))) = max(x, 0) - 0.5 |x| erfc(|x| / sqrt(2)), where erfc to 1.5e-7 is
/// a polynomial in 1 / (1 + p z) times exp(-z^2): Abramowitz and Stegun, 7.1.26.
__device__ inline float gelu_erf(float x) {
  constexpr float kSqrtHalf = 0.7071067811865476f;
  const float magnitude = fabsf(x);
  const float t = ptx::reciprocal_fast(fmaf(0.3275911f * kSqrtHalf, magnitude, 1.0f));
  float sum = fmaf(1.061405429f, t, -1.453152027f);
  sum = fmaf(sum, t, 1.421413741f);
  sum = fmaf(sum, t, -0.284496736f);
  sum = fmaf(sum, t, 0.254829592f);
  const float erfc = sum * t * ptx::exp2_fast(-0.5f * ptx::kLog2E * x * x);
  return fmaf(-0.5f * magnitude, erfc, fmaxf(x, 0.0f));
}
template <class Function>
__device__ void for_each_value(float& value, Function function) {
  value = function(value);
}
template <class Values, int kCount, class Function>
__device__ void for_each_value(Values (&values)[kCount], Function function) {
#pragma unroll
  for (auto& value : values) for_each_value(value, function);
}
/// Applies the activation to all values of an array of any depth.
template <class Values>
__device__ void activate(ops::Activation activation, Values& values) {
  if (activation == ops::Activation::kNone) return;
  if (activation == ops::Activation::kGeluErf)
    return for_each_value(values, [](float x) { return gelu_erf(x); });
  const Gate gate = activation == ops::Activation::kGeluTanh    ? kGeluTanhGate
                    : activation == ops::Activation::kQuickGelu ? kQuickGeluGate
                                                                : kSiluGate;
  for_each_value(values, gate);
}

}  // namespace fovea::cuda
