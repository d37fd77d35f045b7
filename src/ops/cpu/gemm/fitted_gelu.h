#pragma once

// GELU behind sums of int8 products, in half of the operations that ops/cpu/simd/activation.h
// takes: without exponential and division. Include only from the unit of an instruction set.

#include "ops/cpu/simd/activation.h"

namespace fovea::cpu {

/// g(x) = 1/2 + x h(x^2 - kLimit^2 / 2) approximates what GELU multiplies x by, for |x| <= kLimit;
/// beyond, it is that of +-kLimit, which is 1 and 0. x g(x) differs from GELU by less than 1.1e-6
/// (1 + |x|): 8 bits have steps thousands of times as large. h: polynomial fitted for least error
/// of that kind; in the shifted argument its terms do not cancel.
struct GeluTanhFit {
  static constexpr float kLimit = 4.55f;
  static constexpr float kMiddle = 10.3512506f;  // of x^2
  static constexpr float kCoefficients[] = {0.155238241f,     -0.00739810662f,  0.000508953759f,
                                            -3.62513892e-05f, 2.4872727e-06f,   -1.60939763e-07f,
                                            9.05591158e-09f,  -4.25540159e-10f, 2.86391778e-11f,
                                            -2.34110886e-12f, 8.30717128e-14f};
};
struct GeluErfFit {
  static constexpr float kLimit = 4.75f;
  static constexpr float kMiddle = 11.28125f;
  static constexpr float kCoefficients[] = {0.148748264f,     -0.00653026346f,  0.000418326177f,
                                            -2.82308538e-05f, 1.87398746e-06f,  -1.19428975e-07f,
                                            6.60624977e-09f,  -2.95701824e-10f, 1.78306155e-11f,
                                            -1.32865973e-12f, 4.37313421e-14f};
};

template <class V, class Fit>
typename V::Reg fitted_gelu(typename V::Reg x) {
  // Operands in this order keep NaN.
  const typename V::Reg near =
      V::min(V::broadcast(Fit::kLimit), V::max(V::broadcast(-Fit::kLimit), x));
  const typename V::Reg t = V::fma(near, near, V::broadcast(-Fit::kMiddle));
  return V::mul(x, V::fma(near, polynomial<V>(Fit::kCoefficients, t), V::broadcast(0.5f)));
}

/// The activations of ops/linear.h.
template <class V, ops::Activation kActivation>
typename V::Reg activate_fitted(typename V::Reg x) {
  using ops::Activation;
  if constexpr (kActivation == Activation::kGeluTanh) {
    return fitted_gelu<V, GeluTanhFit>(x);
  } else if constexpr (kActivation == Activation::kGeluErf) {
    return fitted_gelu<V, GeluErfFit>(x);
  } else {
    return activate<V, kActivation>(x);
  }
}

}  // namespace fovea::cpu
