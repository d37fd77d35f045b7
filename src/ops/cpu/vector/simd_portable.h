#pragma once

// A vector of four in the compilers' vector extension, for processors without a leaf of their own;
// see simd_avx512.h for how to include and what members mean.

#include <cstdint>
#include <cstring>

namespace fovea::cpu {
namespace {

struct Simd {
  using Reg [[gnu::vector_size(16)]] = float;
  using Bits [[gnu::vector_size(16)]] = std::int32_t;
  static constexpr int kWidth = 4;
  static constexpr int kTileRows = 4;  // 12 accumulators of 16 registers
  static constexpr int kTileVectors = 3;

  static Reg load(const float* from) {
    Reg a;
    std::memcpy(&a, from, sizeof(a));
    return a;
  }
  static void store(float* to, Reg a) { std::memcpy(to, &a, sizeof(a)); }
  static Reg load_some(const float* from, std::int64_t count) {
    Reg a = {};
    for (std::int64_t i = 0; i < count; ++i) a[i] = from[i];
    return a;
  }
  static void store_some(float* to, Reg a, std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = a[i];
  }
  static Reg broadcast(float a) { return Reg{a, a, a, a}; }
  static Reg add(Reg a, Reg b) { return a + b; }
  static Reg sub(Reg a, Reg b) { return a - b; }
  static Reg mul(Reg a, Reg b) { return a * b; }
  static Reg div(Reg a, Reg b) { return a / b; }
  static Reg fma(Reg a, Reg b, Reg c) { return a * b + c; }
  static Reg max(Reg a, Reg b) { return a > b ? a : b; }
  static Reg min(Reg a, Reg b) { return a < b ? a : b; }
  static Reg abs(Reg a) { return reinterpret_cast<Reg>(reinterpret_cast<Bits>(a) & 0x7fffffff); }
  static Reg where_negative(Reg x, Reg yes, Reg no) {
    return reinterpret_cast<Bits>(x) < 0 ? yes : no;
  }
  static Reg round(Reg a) {
    // Adding and subtracting 1.5 * 2^23 leaves the nearest integer; larger values are integers.
    const Reg magic = broadcast(12582912.0f);
    const Reg rounded = (a + magic) - magic;
    const Bits large = (a >= broadcast(4194304.0f)) | (a <= broadcast(-4194304.0f));
    return large ? a : rounded;
  }
  static Reg scale(Reg a, Reg n) {
    const Bits exponent = (__builtin_convertvector(n, Bits) + 127) << 23;
    const Bits tiny = n < broadcast(-126.0f);
    return tiny ? Reg{} : a * reinterpret_cast<Reg>(exponent);
  }
  static float sum(Reg a) { return (a[0] + a[2]) + (a[1] + a[3]); }
  static void transpose(Reg (&a)[kWidth]) {
    const Reg low01 = __builtin_shufflevector(a[0], a[1], 0, 4, 1, 5);
    const Reg high01 = __builtin_shufflevector(a[0], a[1], 2, 6, 3, 7);
    const Reg low23 = __builtin_shufflevector(a[2], a[3], 0, 4, 1, 5);
    const Reg high23 = __builtin_shufflevector(a[2], a[3], 2, 6, 3, 7);
    a[0] = __builtin_shufflevector(low01, low23, 0, 1, 4, 5);
    a[1] = __builtin_shufflevector(low01, low23, 2, 3, 6, 7);
    a[2] = __builtin_shufflevector(high01, high23, 0, 1, 4, 5);
    a[3] = __builtin_shufflevector(high01, high23, 2, 3, 6, 7);
  }
};

/// The same for leaves that give the bits of all others, with integers.
struct SameBitsSimd : Simd {
  static Bits load_bits(const void* p) {
    Bits a;
    std::memcpy(&a, p, sizeof(a));
    return a;
  }
  /// 32 bits for every lane.
  static Bits broadcast_bits(const void* p) {
    std::int32_t bits = 0;
    std::memcpy(&bits, p, sizeof(bits));
    return Bits{bits, bits, bits, bits};
  }
  /// Rounded once, which the base class leaves to the hardware.
  static Reg fma(Reg a, Reg b, Reg c) {
    for (int i = 0; i < kWidth; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return c;
  }
};

}  // namespace
}  // namespace fovea::cpu
