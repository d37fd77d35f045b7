#pragma once

// Integers of the int8 linear layer in vectors of 256 bits, all but the product. Include after
// ops/cpu/vector/simd_avx2.h, from a leaf.

#include <cstddef>

#include "ops/cpu/vector/simd_avx2.h"

namespace fovea::cpu {
namespace {

struct Int8Avx2 : Simd {
  using Int = __m256i;

  static void prefetch(const std::byte* p) {
    _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
  }
  static Int zero() { return _mm256_setzero_si256(); }
  static Int load_group(const std::byte* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static Int broadcast_group(const std::uint8_t* p) {
    int group = 0;
    __builtin_memcpy(&group, p, sizeof(group));
    return _mm256_set1_epi32(group);
  }
  static Int dot_one(Int sum, std::int32_t excess, Int w, int i) {
    const Int value = _mm256_srai_epi32(_mm256_sll_epi32(w, _mm_cvtsi32_si128(24 - 8 * i)), 24);
    return _mm256_add_epi32(sum, _mm256_mullo_epi32(value, _mm256_set1_epi32(excess)));
  }
  static int count_outside(Reg a, Reg low, Reg high) {
    const Reg outside =
        _mm256_or_ps(_mm256_cmp_ps(a, low, _CMP_LT_OQ), _mm256_cmp_ps(a, high, _CMP_GT_OQ));
    return __builtin_popcount(static_cast<unsigned>(_mm256_movemask_ps(outside)));
  }
  static Int load_int(const std::int32_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static void store_int(std::int32_t* p, Int a) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), a);
  }
  static Reg to_float(Int a) { return _mm256_cvtepi32_ps(a); }
  static Int add_bytes(Int sum, const std::uint8_t* p) {
    const Int bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    return _mm256_add_epi32(sum, _mm256_sad_epu8(bytes, zero()));
  }
  static float smallest(Reg a) { return -largest(_mm256_xor_ps(a, _mm256_set1_ps(-0.0f))); }
  static float largest(Reg a) {
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_shuffle_ps(b, b, 1)));
  }
  static void store_bytes(std::uint8_t* p, const Reg (&a)[4]) {
    const Int low = _mm256_packs_epi32(_mm256_cvtps_epi32(a[0]), _mm256_cvtps_epi32(a[1]));
    const Int high = _mm256_packs_epi32(_mm256_cvtps_epi32(a[2]), _mm256_cvtps_epi32(a[3]));
    // Packing leaves four bytes of every vector in each part of 128 bits.
    const Int order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order));
  }
};

}  // namespace
}  // namespace fovea::cpu
