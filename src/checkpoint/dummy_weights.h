#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace fovea::checkpoint {

/// Standard deviation of dummy weights.
inline constexpr float kDummyDeviation = 0.02f;

/// Fills `out` with bf16 values that are nearly normal:
///   out[i] = bf16(mean + kDummyDeviation * (b0 + b1 + b2 + b3 - 510) / sigma),
///   sigma^2 = 4 * (256^2 - 1) / 12,
/// where b0..b3 are the bytes of a 32-bit hash of (seed, name, i). The sum of four uniform
/// variables has the first three moments of the normal distribution, kurtosis 2.7 instead of 3, and
/// ends at 3.45 standard deviations. An element depends on nothing but seed, name and i modulo
/// 2^32.
void fill_dummy_weights(std::uint64_t seed, std::string_view name, float mean,
                        std::span<std::uint16_t> out) noexcept;

}  // namespace fovea::checkpoint
