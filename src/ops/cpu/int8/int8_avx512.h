#pragma once

// Integers of the int8 linear layer in vectors of 512 bits, all but the product. Include from a
// leaf.

#include <cstddef>

#include "ops/cpu/vector/simd_avx512.h"

namespace fovea::cpu {
namespace {

struct Int8Avx512 : Simd {
  using Int = __m512i;

  static void prefetch(const std::byte* p) {
    _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
  }
  static Int zero() { return _mm512_setzero_si512(); }
  static Int load_group(const std::byte* p) { return _mm512_loadu_si512(p); }
  static Int broadcast_group(const std::uint8_t* p) {
    int group = 0;
    __builtin_memcpy(&group, p, sizeof(group));
    return _mm512_set1_epi32(group);
  }
  static Int dot_one(Int sum, std::int32_t excess, Int w, int i) {
    const Int value = _mm512_srai_epi32(_mm512_sll_epi32(w, _mm_cvtsi32_si128(24 - 8 * i)), 24);
    return _mm512_add_epi32(sum, _mm512_mullo_epi32(value, _mm512_set1_epi32(excess)));
  }
  static int count_outside(Reg a, Reg low, Reg high) {
    const __mmask16 below = _mm512_cmp_ps_mask(a, low, _CMP_LT_OQ);
    const __mmask16 above = _mm512_cmp_ps_mask(a, high, _CMP_GT_OQ);
    return __builtin_popcount(static_cast<unsigned>(below) | static_cast<unsigned>(above));
  }
  static Int load_int(const std::int32_t* p) { return _mm512_loadu_si512(p); }
  static void store_int(std::int32_t* p, Int a) { _mm512_storeu_si512(p, a); }
  static Reg to_float(Int a) { return _mm512_cvtepi32_ps(a); }
  static Int add_bytes(Int sum, const std::uint8_t* p) {
    return _mm512_add_epi32(sum, _mm512_sad_epu8(_mm512_loadu_si512(p), zero()));
  }
  static float smallest(Reg a) { return _mm512_reduce_min_ps(a); }
  static float largest(Reg a) { return _mm512_reduce_max_ps(a); }
  static void store_bytes(std::uint8_t* p, const Reg (&a)[4]) {
    const Int low = _mm512_packs_epi32(_mm512_cvtps_epi32(a[0]), _mm512_cvtps_epi32(a[1]));
    const Int high = _mm512_packs_epi32(_mm512_cvtps_epi32(a[2]), _mm512_cvtps_epi32(a[3]));
    // Packing leaves four bytes of every vector in each part of 128 bits.
    const Int order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_storeu_si512(p, _mm512_permutexvar_epi32(order, _mm512_packus_epi16(low, high)));
  }
};

}  // namespace
}  // namespace fovea::cpu
