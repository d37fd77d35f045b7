// Names and conversions of element types.
#include "fovea/tower/core/dtype.h"

#include <cstring>

namespace fovea {

const char* to_string(DType dtype) noexcept {
  switch (dtype) {
    case DType::kF32: return "float32";
    case DType::kF16: return "float16";
    case DType::kBF16: return "bfloat16";
    case DType::kF8E4M3: return "float8_e4m3fn";
    case DType::kI8: return "int8";
    case DType::kU8: return "uint8";
    case DType::kI32: return "int32";
    case DType::kI64: return "int64";
  }
  return "unknown";
}

float f16_to_f32(std::uint16_t bits) noexcept {
  const std::uint32_t sign = (bits & 0x8000u) << 16;
  const std::uint32_t exponent = (bits >> 10) & 0x1fu;
  const std::uint32_t mantissa = bits & 0x3ffu;
  if (exponent == 0x1f) return std::bit_cast<float>(sign | 0x7f800000u | (mantissa << 13));
  if (exponent != 0)
    return std::bit_cast<float>(sign | ((exponent + 112) << 23) | (mantissa << 13));
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24f;  // zero and subnormals
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(magnitude));
}

std::uint16_t f32_to_f16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint16_t>(sign | 0x7e00u);
  if (magnitude >= 0x477ff000u)
    return static_cast<std::uint16_t>(sign | 0x7c00u);  // rounds past 65504
  if (magnitude < 0x38800000u) {  // result is subnormal: let the float adder round at 2^-24
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3f000000u));
  }
  const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
}

float e4m3_to_f32(std::uint8_t bits) noexcept {
  const std::uint32_t sign = (bits & 0x80u) << 24;
  const std::uint32_t magnitude = bits & 0x7fu;
  if (magnitude == 0x7f) return std::bit_cast<float>(sign | 0x7fc00000u);
  if (magnitude >= 8) return std::bit_cast<float>(sign | ((magnitude << 20) + 0x3c000000u));
  const float subnormal = static_cast<float>(magnitude) * 0x1p-9f;
  return std::bit_cast<float>(sign | std::bit_cast<std::uint32_t>(subnormal));
}

std::uint8_t f32_to_e4m3(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint8_t>((bits >> 24) & 0x80u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return static_cast<std::uint8_t>(sign | 0x7fu);
  if (magnitude >= std::bit_cast<std::uint32_t>(kMaxE4M3))
    return static_cast<std::uint8_t>(sign | 0x7eu);
  if (magnitude < 0x3c800000u) {  // below 2^-6: let the float adder round at 2^-9
    const float shifted = std::bit_cast<float>(magnitude) + 0x1p14f;
    return static_cast<std::uint8_t>(
        sign | (std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0x1p14f)));
  }
  const std::uint32_t rounded = magnitude + 0x7ffffu + ((magnitude >> 20) & 1u);
  return static_cast<std::uint8_t>(sign | ((rounded - 0x3c000000u) >> 20));
}

void widen_to_f32(DType dtype, const std::byte* from, float* to, std::size_t count) noexcept {
  if (dtype == DType::kF32) {
    if (count > 0) std::memcpy(to, from, count * sizeof(float));  // none may be at null
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, from + i * sizeof(bits), sizeof(bits));
    to[i] = dtype == DType::kBF16 ? bf16_to_f32(bits) : f16_to_f32(bits);
  }
}

void narrow_from_f32(const float* from, DType dtype, std::byte* to, std::size_t count) noexcept {
  if (dtype == DType::kF32) {
    if (count > 0) std::memcpy(to, from, count * sizeof(float));  // none may be at null
    return;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint16_t bits = dtype == DType::kBF16 ? f32_to_bf16(from[i]) : f32_to_f16(from[i]);
    std::memcpy(to + i * sizeof(bits), &bits, sizeof(bits));
  }
}

}  // namespace fovea
