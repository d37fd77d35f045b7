#pragma once

// The activations of ops/linear.h on a vector type V. Include after one simd/<isa>.h: every
// function is a template over a type with internal linkage in each unit.

#include "fovea/tower/ops/linear.h"

namespace fovea::cpu {

/// coefficients[0] + coefficients[1] x + ..., by Horner's rule.
template <class V, int kCount>
typename V::Reg polynomial(const float (&coefficients)[kCount], typename V::Reg x) {
  typename V::Reg sum = V::broadcast(coefficients[kCount - 1]);
  for (int i = kCount - 2; i >= 0; --i) sum = V::fma(sum, x, V::broadcast(coefficients[i]));
  return sum;
}

/// e^x = 2^n e^r with n = round(x / ln 2) and |r| <= ln(2) / 2.
/// e^r: polynomial fitted for least relative error (3e-9 before rounding). Relative error of the
/// result below 1.2e-7 where it is a normal number; 0 and infinity beyond; NaN stays NaN.
template <class V>
typename V::Reg exponential(typename V::Reg x) {
  static constexpr float kCoefficients[] = {
      1.0f, 1.0f, 0.49999994f, 0.166665152f, 0.0416684560f, 0.00836941879f, 0.00138131448f};
  // Beyond these limits the result is 0 or infinity whatever x is. Operands in this order keep NaN.
  x = V::min(V::broadcast(89.0f), V::max(V::broadcast(-104.0f), x));
  const typename V::Reg n = V::round(V::mul(x, V::broadcast(1.44269504f)));
  // ln 2 in two parts (Cody and Waite): the first has so few bits that n times it is exact.
  typename V::Reg r = V::fma(n, V::broadcast(-0.693359375f), x);
  r = V::fma(n, V::broadcast(2.12194440e-4f), r);
  return V::scale(polynomial<V>(kCoefficients, r), n);
}

/// 1 / (1 + e^-x)
template <class V>
typename V::Reg sigmoid(typename V::Reg x) {
  const typename V::Reg one = V::broadcast(1.0f);
  return V::div(one, V::add(one, exponential<V>(V::mul(x, V::broadcast(-1.0f)))));
}

/// Distribution function of the normal distribution, 0.5 (1 + erf(x / sqrt 2)), without the
/// cancellation of that formula: for t = |x| the tail is p = e^(-t^2/2) u f(u), u = 1 / (1 + 0.3
/// t), and the result is p for x < 0, 1 - p otherwise. f: polynomial fitted on t in [0, 14.5] for
/// least relative error (4e-9 before rounding).
template <class V>
typename V::Reg normal_cdf(typename V::Reg x) {
  static constexpr float kCoefficients[] = {
      0.119686689f,   0.119571814f, 0.110235420f,  0.0783896730f, 0.0961567596f,
      -0.0794233458f, 0.191784349f, -0.228213453f, 0.112435535f,  -0.0206234563f};
  const typename V::Reg one = V::broadcast(1.0f);
  // At 14.5 the tail is below the smallest f32. Operands in this order keep NaN.
  const typename V::Reg t = V::min(V::broadcast(14.5f), V::abs(x));
  const typename V::Reg u = V::div(one, V::fma(t, V::broadcast(0.3f), one));
  const typename V::Reg bell = exponential<V>(V::mul(V::mul(t, t), V::broadcast(-0.5f)));
  const typename V::Reg tail = V::mul(bell, V::mul(polynomial<V>(kCoefficients, u), u));
  return V::where_negative(x, tail, V::sub(one, tail));
}

/// The activations of ops/linear.h. 0.5 (1 + tanh u) is written as sigmoid(2 u), which keeps its
/// relative precision for negative u.
template <class V, ops::Activation kActivation>
typename V::Reg activate(typename V::Reg x) {
  using ops::Activation;
  if constexpr (kActivation == Activation::kNone) {
    return x;
  } else if constexpr (kActivation == Activation::kSilu) {
    return V::mul(x, sigmoid<V>(x));
  } else if constexpr (kActivation == Activation::kRelu2) {
    // Of a NaN both operands of the product are one.
    return V::mul(x, V::where_negative(x, V::broadcast(0.0f), x));
  } else if constexpr (kActivation == Activation::kQuickGelu) {
    return V::mul(x, sigmoid<V>(V::mul(x, V::broadcast(1.702f))));
  } else if constexpr (kActivation == Activation::kGeluTanh) {
    constexpr float kTwiceSqrt2OverPi = 1.59576912f;
    const typename V::Reg cube = V::mul(V::mul(x, x), x);
    const typename V::Reg u = V::fma(cube, V::broadcast(0.044715f), x);
    return V::mul(x, sigmoid<V>(V::mul(u, V::broadcast(kTwiceSqrt2OverPi))));
  } else {
    return V::mul(x, normal_cdf<V>(x));
  }
}

/// Calls body<activation>().
template <class Body>
void with_constant(ops::Activation activation, const Body& body) {
  using ops::Activation;
  switch (activation) {
    case Activation::kNone: return body.template operator()<Activation::kNone>();
    case Activation::kGeluTanh: return body.template operator()<Activation::kGeluTanh>();
    case Activation::kGeluErf: return body.template operator()<Activation::kGeluErf>();
    case Activation::kQuickGelu: return body.template operator()<Activation::kQuickGelu>();
    case Activation::kSilu: return body.template operator()<Activation::kSilu>();
    case Activation::kRelu2: return body.template operator()<Activation::kRelu2>();
  }
}

}  // namespace fovea::cpu
