#pragma once

// A vector of four in the compilers' vector extension, for processors without a unit of their own;
// see avx512.h for how to include and what members mean.

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fovea::cpu {
namespace {

struct Simd {
  using Reg [[gnu::vector_size(16)]] = float;
  using Int [[gnu::vector_size(16)]] = std::int32_t;
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
  static float fma(float a, float b, float c) { return a * b + c; }
  static Reg fnma(Reg a, Reg b, Reg c) { return c - a * b; }
  static Reg max(Reg a, Reg b) { return a > b ? a : b; }
  static Reg min(Reg a, Reg b) { return a < b ? a : b; }
  static Reg abs(Reg a) { return reinterpret_cast<Reg>(reinterpret_cast<Int>(a) & 0x7fffffff); }
  static Reg where_negative(Reg x, Reg yes, Reg no) {
    return reinterpret_cast<Int>(x) < 0 ? yes : no;
  }
  static Reg round(Reg a) {
    // Adding and subtracting 1.5 * 2^23 leaves the nearest integer; larger values are integers.
    const Reg magic = broadcast(12582912.0f);
    const Reg rounded = (a + magic) - magic;
    const Int large = (a >= broadcast(4194304.0f)) | (a <= broadcast(-4194304.0f));
    return large ? a : rounded;
  }
  static Reg scale(Reg a, Reg n) {
    const Int exponent = (__builtin_convertvector(n, Int) + 127) << 23;
    const Int tiny = n < broadcast(-126.0f);
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

  static Int zero() { return Int{}; }
  static Int load_int(const void* p) {
    Int a;
    std::memcpy(&a, p, sizeof(a));
    return a;
  }
  static void store_int(void* p, Int a) { std::memcpy(p, &a, sizeof(a)); }
  static Int broadcast_int(const void* p) {
    std::int32_t value = 0;
    std::memcpy(&value, p, sizeof(value));
    return Int{value, value, value, value};
  }
  static Reg to_float(Int a) { return __builtin_convertvector(a, Reg); }
  static void prefetch(const std::byte* p) { __builtin_prefetch(p); }

  static Reg lower_bf16(Int a) { return reinterpret_cast<Reg>(a << 16); }
  static Reg upper_bf16(Int a) { return reinterpret_cast<Reg>(a & -65536); }
  static Reg dot_bf16(Reg sum, Int x, Int w) {
    return add_product(add_product(sum, upper_bf16(x), upper_bf16(w)), lower_bf16(x),
                       lower_bf16(w));
  }
  static void store_bf16(std::byte* p, Reg a) {
    for (int i = 0; i < kWidth; ++i) {
      const std::uint16_t rounded = round_to_bf16(a[i]);
      std::memcpy(p + 2 * i, &rounded, sizeof(rounded));
    }
  }

  static Int dot_int8(Int sum, Int x, Int w) {
    for (int shift = 0; shift < 32; shift += 8)
      sum += ((x >> shift) & 0xff) * ((w << (24 - shift)) >> 24);
    return sum;
  }
  static Int add_int8(Int sum, std::int32_t excess, Int w, int i) {
    return sum + excess * ((w << (24 - 8 * i)) >> 24);
  }
  static Int add_bytes(Int sum, const std::uint8_t* p) {
    const Int bytes = load_int(p);
    for (int shift = 0; shift < 32; shift += 8) sum += (bytes >> shift) & 0xff;
    return sum;
  }
  static void store_bytes(std::uint8_t* p, const Reg (&a)[4]) {
    for (const Reg& part : a) {
      const Reg y = min(max(round(part), Reg{}), broadcast(255.0f));
      for (int i = 0; i < kWidth; ++i) *p++ = static_cast<std::uint8_t>(y[i]);
    }
  }
  static float smallest(Reg a) {
    float result = a[0];
    for (int i = 1; i < kWidth; ++i) result = a[i] < result ? a[i] : result;
    return result;
  }
  static float largest(Reg a) {
    float result = a[0];
    for (int i = 1; i < kWidth; ++i) result = a[i] > result ? a[i] : result;
    return result;
  }
  static int count_outside(Reg a, Reg low, Reg high) {
    int count = 0;
    for (int i = 0; i < kWidth; ++i) count += a[i] < low[i] || a[i] > high[i] ? 1 : 0;
    return count;
  }

  static Int ones() { return Int{} + 0x00010001; }
  static Int dot_int16(Int sum, Int a, Int b) {
    return sum + ((a << 16) >> 16) * ((b << 16) >> 16) + (a >> 16) * (b >> 16);
  }
  static Int pair(Reg first, Reg second) {
    return (to_int(first) & 0xffff) | (to_int(second) << 16);
  }
  static void store_shorts(void* p, Reg a) {
    const Int wide = to_int(a);
    std::int16_t shorts[kWidth];
    for (int i = 0; i < kWidth; ++i) shorts[i] = static_cast<std::int16_t>(wide[i]);
    std::memcpy(p, shorts, sizeof(shorts));
  }
  static Reg with_larger_bits(Reg a, Reg b) {
    return reinterpret_cast<Int>(a) > reinterpret_cast<Int>(b) ? a : b;
  }

 private:
  static Int to_int(Reg a) {
    const Reg number = a == a ? a : Reg{};
    return __builtin_convertvector(round(number), Int);
  }

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

/// The same for kernels that give the bits of those of all units: fma is rounded once, which Simd
/// leaves to the hardware.
struct FusedSimd : Simd {
  static Reg fma(Reg a, Reg b, Reg c) {
    for (int i = 0; i < kWidth; ++i) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return c;
  }
};

}  // namespace
}  // namespace fovea::cpu
