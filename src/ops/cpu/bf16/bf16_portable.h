#pragma once

// Pairs of bf16 numbers for processors without a leaf of their own. Include from a leaf.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ops/cpu/vector/simd_portable.h"

namespace fovea::cpu {
namespace {

struct PairsPortable : SameBitsSimd {
  using Pairs = Bits;
  static constexpr int kTileRows = 4;

  static void prefetch(const std::byte* p) { __builtin_prefetch(p); }
  static Pairs load_pairs(const std::byte* p) { return load_bits(p); }
  static Pairs broadcast_pair(const std::byte* p) { return broadcast_bits(p); }
  static Reg dot(Reg sum, Pairs x, Pairs w) {
    return add_product(add_product(sum, second(x), second(w)), first(x), first(w));
  }
  static void store_bf16(std::byte* p, Reg a) {
    for (int i = 0; i < kWidth; ++i) {
      const std::uint16_t rounded = round_to_bf16(a[i]);
      std::memcpy(p + 2 * i, &rounded, sizeof(rounded));
    }
  }

 private:
  static Reg first(Pairs a) { return reinterpret_cast<Reg>(a << 16); }
  static Reg second(Pairs a) { return reinterpret_cast<Reg>(a & -65536); }

  /// fma for factors in bf16. Their product is exact in double precision, and a sum of it and an
  /// f32 number that is rounded to 53 bits and then to 24 is the sum rounded to 24 bits at once.
  /// Source: Figueroa, "When is Double Rounding Innocuous?", SIGNUM Newsletter 30(3), 1995.
  static Reg add_product(Reg sum, Reg x, Reg w) {
    for (int i = 0; i < kWidth; ++i) {
      const double product = static_cast<double>(x[i]) * static_cast<double>(w[i]);
      sum[i] = static_cast<float>(static_cast<double>(sum[i]) + product);
    }
    return sum;
  }

  static std::uint16_t round_to_bf16(float a) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &a, sizeof(bits));
    const std::uint32_t exponent = bits & 0x7f800000u;
    if (exponent == 0) return static_cast<std::uint16_t>(bits >> 16 & 0x8000u);
    const bool is_nan = exponent == 0x7f800000u && (bits & 0x007fffffu) != 0;
    if (is_nan) return static_cast<std::uint16_t>(bits >> 16 | 0x40u);
    return static_cast<std::uint16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
  }
};

}  // namespace
}  // namespace fovea::cpu
