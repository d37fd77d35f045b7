#pragma once

// Integers of attention in vectors of 512 bits. Include from a leaf.

#include "ops/cpu/vector/simd_avx512.h"

namespace fovea::cpu {
namespace {

struct Int16Avx512 : Simd {
  /// With __m512i, vectors of 64 bits, g++ 12 copies an accumulator before and after every product,
  /// and spills.
  using Int [[gnu::vector_size(64)]] = int;

  static Int zero() { return Int{}; }
  static Int ones() { return Int{} + 0x00010001; }
  static Int load_int(const void* p) { return reinterpret_cast<Int>(_mm512_loadu_si512(p)); }
  static void store_int(void* p, Int a) { _mm512_storeu_si512(p, bits(a)); }
  static Int broadcast_pair(const void* p) {
    int pair = 0;
    __builtin_memcpy(&pair, p, sizeof(pair));
    return reinterpret_cast<Int>(_mm512_set1_epi32(pair));
  }
  static Int dot(Int sum, Int a, Int b) {
    return reinterpret_cast<Int>(_mm512_dpwssd_epi32(bits(sum), bits(a), bits(b)));
  }
  static Reg to_float(Int a) { return _mm512_cvtepi32_ps(bits(a)); }
  static Int pair(Reg first, Reg second) {
    constexpr __mmask32 kUpperHalves = 0xaaaaaaaa;
    return reinterpret_cast<Int>(
        _mm512_mask_blend_epi16(kUpperHalves, _mm512_cvtps_epi32(first),
                                _mm512_slli_epi32(_mm512_cvtps_epi32(second), 16)));
  }
  static void store_shorts(void* p, Reg a) {
    _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(a)));
  }
  static Reg with_larger_bits(Reg a, Reg b) {
    return _mm512_castsi512_ps(_mm512_max_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b)));
  }

  static __m512i bits(Int a) { return reinterpret_cast<__m512i>(a); }
};

}  // namespace
}  // namespace fovea::cpu
