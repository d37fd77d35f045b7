#include "support/round_to_odd.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace fovea::test {
namespace {

float without_denormals(float a) { return std::abs(a) < 0x1p-126f ? std::copysign(0.0f, a) : a; }

/// @param bits of a double whose lower bits were cut off. @param is_exact none of them were ones.
float narrow_to_odd(std::uint64_t bits, bool is_exact) {
  constexpr std::uint64_t kCut = (std::uint64_t{1} << 29) - 1;  // 52 - 23 bits
  const auto value = std::bit_cast<double>(bits);
  if (!std::isfinite(value)) return static_cast<float>(value);
  const float sign = std::signbit(value) ? -1.0f : 1.0f;
  if (std::abs(value) < 0x1p-126) return sign * 0.0f;
  if (std::abs(value) >= 0x1p128) return sign * std::numeric_limits<float>::infinity();
  is_exact = is_exact && (bits & kCut) == 0;
  const auto cut = static_cast<float>(std::bit_cast<double>(bits & ~kCut));
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(cut) | (is_exact ? 0u : 1u));
}

}  // namespace

float multiply_bf16(float a, float b) {
  const double product = double{without_denormals(a)} * double{without_denormals(b)};
  return narrow_to_odd(std::bit_cast<std::uint64_t>(product), true);
}

float add_to_odd(float a, float b) {
  const double x = without_denormals(a);
  const double y = without_denormals(b);
  const double sum = x + y;
  auto bits = std::bit_cast<std::uint64_t>(sum);
  // What rounding to nearest added, exactly (Knuth's two-sum); NaN where the sum is not finite.
  const double part = sum - x;
  const double missing = (x - (sum - part)) + (y - part);
  if (!std::isfinite(sum) || missing == 0) return narrow_to_odd(bits, true);
  if (std::signbit(missing) != std::signbit(sum)) --bits;  // it was rounded away from zero
  return narrow_to_odd(bits, false);
}

}  // namespace fovea::test
