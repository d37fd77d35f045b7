#pragma once

// Point-wise activations of values in registers (ops/linear.h has their formulas).

#include "fovea/tower/ops/linear.h"
#include "ops/cuda/ptx/ptx.cuh"

namespace fovea::cuda {

/// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))). One special-function instruction where
/// exponential and reciprocal are two. Its error of up to 2.4e-4 |x| is small beside the rounding
/// to bf16 that follows: rows of the golden checkpoint differ from f32 by 5.74e-3 instead
/// of 5.71e-3.
__device__ inline float gelu_tanh(float x) {
  constexpr float kLinear = 0.7978845608028654f;
  constexpr float kCubic = 0.044715f * kLinear;
  const float half = 0.5f * x;
  return fmaf(half, ptx::tanh_fast(x * fmaf(kCubic, x * x, kLinear)), half);
}
/// x / (1 + exp(-factor x)). The error of the fast exponential and reciprocal is far below the
/// rounding of the result.
struct Gate {
  float factor;
  __device__ float operator()(float x) const {
    return x * ptx::reciprocal_fast(1.0f + ptx::exp2_fast(-ptx::kLog2E * factor * x));
  }
};

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
  if (activation == ops::Activation::kGeluTanh)
    return for_each_value(values, [](float x) { return gelu_tanh(x); });
  if (activation == ops::Activation::kRelu2)
    return for_each_value(values, [](float x) { return x < 0.0f ? 0.0f : x * x; });
  for_each_value(values, Gate{activation == ops::Activation::kQuickGelu ? 1.702f : 1.0f});
}

}  // namespace fovea::cuda
