#pragma once

// Numbers of attention as integers of 16 bits and back. Include only from the unit of an
// instruction set; body.h says what V has.

#include "ops/cpu/attention/packing.h"

namespace fovea::cpu {

/// Largest integers of probabilities and of values: kKeyBlock * kProbabilitySteps * kValueSteps <
/// 2^31, so the sum over a block of keys is exact in 32 bits.
inline constexpr std::int32_t kProbabilitySteps = 4095;
inline constexpr std::int32_t kValueSteps = 4095;
static_assert(kKeyBlock * kProbabilitySteps * kValueSteps <= INT32_MAX);

/// Integers of kWidth rows from -steps to steps, and what a step is.
template <class V>
struct RowScales {
  typename V::Reg scale;   ///< finite
  typename V::Reg poison;  ///< NaN for a row with a NaN or infinity, whose integers mean nothing; 0
};

/// Numbers whose reciprocal is a float. A row of smaller ones counts as zeros.
inline constexpr float kSmallestScaled = 1e-30f;

/// y in [-steps, steps] where it is a number, and -steps, which can be converted, where it is NaN.
template <class V>
typename V::Reg drop_nan(typename V::Reg y, float steps) {
  return V::max(y, V::broadcast(-steps));
}

/// The bits of the largest magnitude of every row: those of an infinity or NaN are the largest.
template <class V>
typename V::Reg largest_of_rows(const AttentionRows& rows, std::int64_t count,
                                std::int64_t head_dim) {
  using Reg = typename V::Reg;
  Reg largest[V::kWidth];
  for (std::int64_t r = 0; r < V::kWidth; ++r) {
    largest[r] = V::broadcast(0.0f);
    if (r >= count) continue;
    const float* const x = rows.x + r * rows.stride;
    for (std::int64_t d = 0; d < head_dim; d += V::kWidth)
      largest[r] = V::with_larger_bits(largest[r], V::abs(load_part<V>(x + d, head_dim - d)));
  }
  V::transpose(largest);
  for (int rest = V::kWidth / 2; rest > 0; rest /= 2) {
    for (int r = 0; r < rest; ++r) largest[r] = V::with_larger_bits(largest[r], largest[r + rest]);
  }
  return largest[0];
}

/// The divisor of numbers of these largest magnitudes; 0 where one is not finite.
template <class V>
typename V::Reg finite_or_zero(typename V::Reg largest) {
  constexpr float kLargest = 3.40282347e38f;
  // Operands in this order take NaN for an infinity.
  const typename V::Reg bounded = V::min(largest, V::broadcast(__builtin_inff()));
  return V::where_negative(V::sub(V::broadcast(kLargest), bounded), V::broadcast(0.0f), largest);
}

/// Quantizes up to kWidth rows to integers of 16 bits, products.row_floats() apart; rows beyond
/// `count` have a scale of 0. Stores whole vectors.
/// @param memory for kWidth rows.
template <class V, class Products>
RowScales<V> quantize_rows16(const Products& products, AttentionRows rows, std::int64_t count,
                             std::int64_t head_dim, float steps, float sign, float* memory,
                             float* to) {
  using Reg = typename V::Reg;
  const Reg zero = V::broadcast(0.0f);
  rows = rotated<V>(rows, count, head_dim, memory);
  const Reg largest = largest_of_rows<V>(rows, count, head_dim);
  const Reg finite = finite_or_zero<V>(largest);
  const Reg is_small = V::sub(finite, V::broadcast(kSmallestScaled));
  const Reg reciprocal = V::div(V::broadcast(sign * steps), finite);
  float per_step[V::kWidth];
  V::store(per_step, V::where_negative(is_small, zero, reciprocal));
  for (std::int64_t r = 0; r < count; ++r) {
    const Reg factor = V::broadcast(per_step[r]);
    for (std::int64_t d = 0; d < head_dim; d += V::kWidth) {
      const Reg a = load_part<V>(rows.x + r * rows.stride + d, head_dim - d);
      products.store_part(to + r * products.row_floats(), d, drop_nan<V>(V::mul(a, factor), steps));
    }
  }
  return {V::where_negative(is_small, zero, V::div(finite, V::broadcast(steps))),
          V::sub(largest, largest)};
}

/// Scales of one vector of components of a block of values.
template <class V>
void scale_values16(const float* from, std::int64_t stride, std::int64_t count, std::int64_t left,
                    float* scale, float* steps) {
  using Reg = typename V::Reg;
  const Reg zero = V::broadcast(0.0f);
  const Reg most = V::broadcast(kValueSteps);
  Reg largest = zero;
  for (std::int64_t key = 0; key < count; ++key)
    largest = V::with_larger_bits(largest, V::abs(load_part<V>(from + key * stride, left)));
  const Reg finite = finite_or_zero<V>(largest);
  // Below the smallest the difference is negative: no steps, and a scale of 0.
  const Reg is_small = V::sub(finite, V::broadcast(kSmallestScaled));
  const Reg poison = V::sub(largest, largest);
  V::store(scale, V::add(V::where_negative(is_small, zero, V::div(finite, most)), poison));
  V::store(steps, V::where_negative(is_small, zero, V::div(most, finite)));
}

/// The largest integer R with head_dim * R^2 < 2^31, for head_dim >= 8.
template <class V>
float score_steps(std::int64_t head_dim) {
  return static_cast<float>(
      static_cast<std::int32_t>(__builtin_sqrt(2147483647.0 / static_cast<double>(head_dim))));
}

/// The factors of a step of the streaming softmax.
template <class V, int kVectors>
struct StepWeights {
  typename V::Reg before[kVectors];  ///< the sums so far
  typename V::Reg block[kVectors];   ///< those of this block
};

/// out = before * out + block * scale * sum, for one component of a vector of queries. The first
/// block of keys starts from zero.
template <class V>
void add_values(typename V::Int sum, float scale, bool first, typename V::Reg before,
                typename V::Reg block, float* out) {
  using Reg = typename V::Reg;
  const Reg so_far = first ? V::broadcast(0.0f) : V::mul(before, V::load(out));
  const Reg factor = V::mul(V::broadcast(scale), block);
  V::store(out, V::fma(factor, V::to_float(sum), so_far));
}

/// kProbabilitySteps * 2^x for x <= 0; where x is NaN or -infinity, 0 or NaN, which V::pair takes
/// for 0. 2^f by the polynomial of degree 4 with least relative error, 3e-6, and value 1 at 0: a
/// step is 2.4e-4.
template <class V>
typename V::Reg probability16(typename V::Reg x) {
  constexpr float kSteps = kProbabilitySteps;
  const typename V::Reg n = V::round(x);
  const typename V::Reg f = V::sub(x, n);
  typename V::Reg p = V::broadcast(kSteps * 9.5828543e-3f);
  p = V::fma(p, f, V::broadcast(kSteps * 5.5906436e-2f));
  p = V::fma(p, f, V::broadcast(kSteps * 2.4024099e-1f));
  p = V::fma(p, f, V::broadcast(kSteps * 6.9312419e-1f));
  p = V::fma(p, f, V::broadcast(kSteps));
  return V::scale(p, n);
}

}  // namespace fovea::cpu
