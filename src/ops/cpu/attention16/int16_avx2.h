#pragma once

// Integers of attention in vectors of 256 bits, all but the product. Include from a leaf.

#include "ops/cpu/vector/simd_avx2.h"

namespace fovea::cpu {
namespace {

struct Int16Avx2 : Simd {
  /// With __m256i, vectors of 64 bits, g++ 12 copies an accumulator before and after every product.
  using Int [[gnu::vector_size(32)]] = int;

  static Int zero() { return Int{}; }
  static Int ones() { return Int{} + 0x00010001; }
  static Int load_int(const void* p) {
    return reinterpret_cast<Int>(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
  }
  static void store_int(void* p, Int a) { _mm256_storeu_si256(static_cast<__m256i*>(p), bits(a)); }
  static Int broadcast_pair(const void* p) {
    int pair = 0;
    __builtin_memcpy(&pair, p, sizeof(pair));
    return reinterpret_cast<Int>(_mm256_set1_epi32(pair));
  }
  static Reg to_float(Int a) { return _mm256_cvtepi32_ps(bits(a)); }
  static Int pair(Reg first, Reg second) {
    constexpr int kUpperHalves = 0xaa;
    return reinterpret_cast<Int>(
        _mm256_blend_epi16(_mm256_cvtps_epi32(first),
                           _mm256_slli_epi32(_mm256_cvtps_epi32(second), 16), kUpperHalves));
  }
  static void store_shorts(void* p, Reg a) {
    const __m256i wide = _mm256_cvtps_epi32(a);
    _mm_storeu_si128(static_cast<__m128i*>(p), _mm_packs_epi32(_mm256_castsi256_si128(wide),
                                                               _mm256_extracti128_si256(wide, 1)));
  }
  static Reg with_larger_bits(Reg a, Reg b) {
    return _mm256_castsi256_ps(_mm256_max_epi32(_mm256_castps_si256(a), _mm256_castps_si256(b)));
  }
  static __m256i bits(Int a) { return reinterpret_cast<__m256i>(a); }
};

}  // namespace
}  // namespace fovea::cpu
