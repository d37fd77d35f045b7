#pragma once

#include <cmath>
#include <limits>

#include "fovea/tower/core/dtype.h"

namespace fovea::test {

inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Half a unit in the last place of the bf16 number 1: no number has a larger share.
inline constexpr double kBf16Rounding = 0x1p-8;

/// Where the rounding errors of an op come from.
enum class OpClass {
  kPointwise,  ///< a handful of f32 operations per element, no sum
  kNorm,       ///< a sum over a row of about a thousand elements, then point-wise
  kAttention,  ///< two sums of products and an exponential
};

/// |got - want| <= absolute + relative * |want| for inputs of order 1.
struct Tolerance {
  double absolute;
  double relative;
  [[nodiscard]] bool accepts(double got, double want) const {
    return std::abs(got - want) <= absolute + relative * std::abs(want);
  }
};

/// f32: an f32 operation rounds by 2^-24 = 6e-8. Point-wise chains have fewer than 8 of them. A sum
///   of n terms in several partial sums is off by about sqrt(n) roundings: 32 for n = 1000. A score
///   of 128 products is off by some 1e-6, and so is the weight it gives, relative to itself.
/// f16, bf16: the same arithmetic in f32 plus the rounding of the result, at most 2^-11 and 2^-8 of
///   it, and in attention the rounding of the weights to the dtype of v before the second product.
[[nodiscard]] constexpr Tolerance tolerance(DType dtype, OpClass op) {
  const double last_place = dtype == DType::kF32 ? 0.0 : dtype == DType::kF16 ? 0x1p-11 : 0x1p-8;
  switch (op) {
    case OpClass::kPointwise: return {5e-7 + last_place / 64, 5e-7 + last_place};
    case OpClass::kNorm: return {2e-6 + last_place / 64, 2e-6 + 1.01 * last_place};
    case OpClass::kAttention: return {4e-6 + 2 * last_place, 4e-6 + 2 * last_place};
  }
  return {};
}

}  // namespace fovea::test
