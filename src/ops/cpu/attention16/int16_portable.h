#pragma once

// Integers of attention in the compilers' vector extension. Include from a leaf.

#include "ops/cpu/vector/simd_portable.h"

namespace fovea::cpu {
namespace {

struct Int16Portable : SameBitsSimd {
  using Int = Bits;

  static Int zero() { return Int{}; }
  static Int ones() { return Int{} + 0x00010001; }
  static Int load_int(const void* p) { return load_bits(p); }
  static void store_int(void* p, Int a) { std::memcpy(p, &a, sizeof(a)); }
  static Int broadcast_pair(const void* p) { return broadcast_bits(p); }
  static Int dot(Int sum, Int a, Int b) {
    return sum + ((a << 16) >> 16) * ((b << 16) >> 16) + (a >> 16) * (b >> 16);
  }
  static Reg to_float(Int a) { return __builtin_convertvector(a, Reg); }
  static Int pair(Reg first, Reg second) {
    return (integers(first) & 0xffff) | (integers(second) << 16);
  }
  static void store_shorts(void* p, Reg a) {
    const Int wide = integers(a);
    std::int16_t shorts[kWidth];
    for (int i = 0; i < kWidth; ++i) shorts[i] = static_cast<std::int16_t>(wide[i]);
    std::memcpy(p, shorts, sizeof(shorts));
  }
  static Reg with_larger_bits(Reg a, Reg b) {
    return reinterpret_cast<Bits>(a) > reinterpret_cast<Bits>(b) ? a : b;
  }

 private:
  static Int integers(Reg a) {
    const Reg number = a == a ? a : Reg{};
    return __builtin_convertvector(round(number), Int);
  }
};

}  // namespace
}  // namespace fovea::cpu
