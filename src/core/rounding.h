#pragma once

#include <cstdint>

namespace fovea {

/// a / b rounded up. @param a >= 0. @param b > 0.
[[nodiscard]] constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}
/// The least multiple of `unit` that is not below `value`.
[[nodiscard]] constexpr std::int64_t round_up(std::int64_t value, std::int64_t unit) {
  return ceil_div(value, unit) * unit;
}

}  // namespace fovea
