#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "fovea/export.h"

namespace fovea {

/// Element types that tensors inside Fovea can have.
enum class DType : std::uint8_t { kF32, kF16, kBF16, kF8E4M3, kI8, kU8, kI32, kI64 };

/// Bytes of one element.
[[nodiscard]] constexpr std::size_t size_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32: return 4;
    case DType::kF16:
    case DType::kBF16: return 2;
    case DType::kF8E4M3:
    case DType::kI8:
    case DType::kU8: return 1;
    case DType::kI64: return 8;
  }
  return 0;
}

/// Name as users write it: "float32", "float16", "bfloat16", "float8_e4m3fn", "int8", "uint8",
/// "int32", "int64".
[[nodiscard]] FOVEA_API const char* to_string(DType dtype) noexcept;

/// bfloat16 keeps the upper half of a float32.
[[nodiscard]] constexpr float bf16_to_f32(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Rounds to nearest even; NaN stays NaN.
[[nodiscard]] constexpr std::uint16_t f32_to_bf16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

/// IEEE binary16 to binary32, exact.
[[nodiscard]] FOVEA_API float f16_to_f32(std::uint16_t bits) noexcept;

/// Rounds to nearest even; overflow gives infinity, NaN stays NaN.
[[nodiscard]] FOVEA_API std::uint16_t f32_to_f16(float value) noexcept;

/// The largest finite number of E4M3.
inline constexpr float kMaxE4M3 = 448.0f;
/// E4M3 (4 bits of exponent, 3 of mantissa, no infinity) to binary32, exact.
/// Source: Micikevicius et al., "FP8 Formats for Deep Learning", arXiv:2209.05433.
[[nodiscard]] FOVEA_API float e4m3_to_f32(std::uint8_t bits) noexcept;
/// Rounds to nearest even; beyond kMaxE4M3 gives kMaxE4M3 with the sign, NaN stays NaN.
[[nodiscard]] FOVEA_API std::uint8_t f32_to_e4m3(float value) noexcept;

/// Converts `count` elements of a float dtype (f32, f16, bf16) to f32. Unaligned input is legal;
/// the ranges must not overlap.
FOVEA_API void widen_to_f32(DType dtype, const std::byte* from, float* to,
                            std::size_t count) noexcept;

/// Converts `count` f32 elements to a float dtype (f32, f16, bf16), rounding to nearest even.
FOVEA_API void narrow_from_f32(const float* from, DType dtype, std::byte* to,
                               std::size_t count) noexcept;

}  // namespace fovea
