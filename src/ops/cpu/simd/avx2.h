#pragma once

// Vector operations with AVX2 and FMA; see avx512.h for how to include and what members mean.

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace fovea::cpu {
namespace {

struct Simd {
  using Reg = __m256;
  static constexpr int kWidth = 8;
  static constexpr int kTileRows = 4;  // 12 accumulators of 16 registers
  static constexpr int kTileVectors = 3;

  static Reg load(const float* from) { return _mm256_loadu_ps(from); }
  static void store(float* to, Reg a) { _mm256_storeu_ps(to, a); }
  static Reg load_some(const float* from, std::int64_t count) {
    return _mm256_maskload_ps(from, mask(count));
  }
  static void store_some(float* to, Reg a, std::int64_t count) {
    _mm256_maskstore_ps(to, mask(count), a);
  }
  static Reg broadcast(float a) { return _mm256_set1_ps(a); }
  static Reg add(Reg a, Reg b) { return _mm256_add_ps(a, b); }
  static Reg sub(Reg a, Reg b) { return _mm256_sub_ps(a, b); }
  static Reg mul(Reg a, Reg b) { return _mm256_mul_ps(a, b); }
  static Reg div(Reg a, Reg b) { return _mm256_div_ps(a, b); }
  static Reg fma(Reg a, Reg b, Reg c) { return _mm256_fmadd_ps(a, b, c); }
  static float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  static Reg fnma(Reg a, Reg b, Reg c) { return _mm256_fnmadd_ps(a, b, c); }
  static Reg max(Reg a, Reg b) { return _mm256_max_ps(a, b); }
  static Reg min(Reg a, Reg b) { return _mm256_min_ps(a, b); }
  static Reg abs(Reg a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
  static Reg where_negative(Reg x, Reg yes, Reg no) { return _mm256_blendv_ps(no, yes, x); }
  static Reg round(Reg a) {
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  static Reg scale(Reg a, Reg n) {
    // The exponent field of 2^n is n + 127; below 2^-126 the result counts as too small.
    const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));
    const Reg power = _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
    const Reg tiny = _mm256_cmp_ps(n, _mm256_set1_ps(-126.0f), _CMP_LT_OQ);
    return _mm256_andnot_ps(tiny, _mm256_mul_ps(a, power));
  }
  static float sum(Reg a) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
  }
  static void transpose(Reg (&a)[kWidth]) {
    Reg b[kWidth];
    for (int i = 0; i < 8; i += 2) {
      b[i] = _mm256_unpacklo_ps(a[i], a[i + 1]);
      b[i + 1] = _mm256_unpackhi_ps(a[i], a[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {  // a[i + j] has columns j and 4 + j of four rows
      a[i] = _mm256_shuffle_ps(b[i], b[i + 2], 0x44);
      a[i + 1] = _mm256_shuffle_ps(b[i], b[i + 2], 0xee);
      a[i + 2] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0x44);
      a[i + 3] = _mm256_shuffle_ps(b[i + 1], b[i + 3], 0xee);
    }
    for (int j = 0; j < 4; ++j) {
      b[j] = _mm256_permute2f128_ps(a[j], a[4 + j], 0x20);
      b[4 + j] = _mm256_permute2f128_ps(a[j], a[4 + j], 0x31);
    }
    for (int j = 0; j < 8; ++j) a[j] = b[j];
  }

  /// With __m256i, vectors of 64 bits, g++ 12 copies an accumulator before and after every product.
  using Int [[gnu::vector_size(32)]] = int;
  static Int zero() { return Int{}; }
  static Int load_int(const void* p) {
    return ints(_mm256_loadu_si256(static_cast<const __m256i*>(p)));
  }
  static void store_int(void* p, Int a) { _mm256_storeu_si256(static_cast<__m256i*>(p), bits(a)); }
  static Int broadcast_int(const void* p) {
    int value = 0;
    __builtin_memcpy(&value, p, sizeof(value));
    return ints(_mm256_set1_epi32(value));
  }
  static Reg to_float(Int a) { return _mm256_cvtepi32_ps(bits(a)); }
  static void prefetch(const std::byte* p) {
    _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
  }

  static Reg lower_bf16(Int a) { return _mm256_castsi256_ps(_mm256_slli_epi32(bits(a), 16)); }
  static Reg upper_bf16(Int a) {
    return _mm256_castsi256_ps(_mm256_and_si256(bits(a), _mm256_set1_epi32(-65536)));
  }
  static Reg dot_bf16(Reg sum, Int x, Int w) {
    return fma(lower_bf16(x), lower_bf16(w), fma(upper_bf16(x), upper_bf16(w), sum));
  }
  static void store_bf16(std::byte* p, Reg a) {
    const __m256i from = _mm256_castps_si256(a);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(from, 16), _mm256_set1_epi32(1));
    const __m256i half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
    const __m256i exponent = _mm256_and_si256(from, _mm256_set1_epi32(0x7f800000));
    const __m256i tiny = _mm256_cmpeq_epi32(exponent, _mm256_setzero_si256());
    __m256i rounded = _mm256_add_epi32(from, half);
    rounded = _mm256_blendv_epi8(rounded, _mm256_or_si256(from, _mm256_set1_epi32(0x400000)), nan);
    rounded = _mm256_andnot_si256(_mm256_and_si256(tiny, _mm256_set1_epi32(0x7fffffff)), rounded);
    rounded = _mm256_srli_epi32(rounded, 16);
    const __m128i words =
        _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), words);
  }

  static Int add_int8(Int sum, std::int32_t excess, Int w, int i) {
    const __m256i left = _mm256_sll_epi32(bits(w), _mm_cvtsi32_si128(24 - 8 * i));
    return sum + ints(_mm256_mullo_epi32(_mm256_srai_epi32(left, 24), _mm256_set1_epi32(excess)));
  }
  static Int add_bytes(Int sum, const std::uint8_t* p) {
    return sum + ints(_mm256_sad_epu8(bits(load_int(p)), _mm256_setzero_si256()));
  }
  static void store_bytes(std::uint8_t* p, const Reg (&a)[4]) {
    const __m256i low = _mm256_packs_epi32(_mm256_cvtps_epi32(a[0]), _mm256_cvtps_epi32(a[1]));
    const __m256i high = _mm256_packs_epi32(_mm256_cvtps_epi32(a[2]), _mm256_cvtps_epi32(a[3]));
    // Packing leaves four bytes of every vector in each part of 128 bits.
    const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm256_permutevar8x32_epi32(_mm256_packus_epi16(low, high), order));
  }
  static float smallest(Reg a) { return -largest(_mm256_xor_ps(a, _mm256_set1_ps(-0.0f))); }
  static float largest(Reg a) {
    __m128 b = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    b = _mm_max_ps(b, _mm_movehl_ps(b, b));
    return _mm_cvtss_f32(_mm_max_ss(b, _mm_shuffle_ps(b, b, 1)));
  }
  static int count_outside(Reg a, Reg low, Reg high) {
    const Reg outside =
        _mm256_or_ps(_mm256_cmp_ps(a, low, _CMP_LT_OQ), _mm256_cmp_ps(a, high, _CMP_GT_OQ));
    return __builtin_popcount(static_cast<unsigned>(_mm256_movemask_ps(outside)));
  }

  static Int ones() { return Int{} + 0x00010001; }
  static Int pair(Reg first, Reg second) {
    constexpr int kUpperHalves = 0xaa;
    return ints(_mm256_blend_epi16(_mm256_cvtps_epi32(first),
                                   _mm256_slli_epi32(_mm256_cvtps_epi32(second), 16),
                                   kUpperHalves));
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
  static Int ints(__m256i a) { return reinterpret_cast<Int>(a); }

 private:
  static __m256i mask(std::int64_t count) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), lane);
  }
};

}  // namespace
}  // namespace fovea::cpu
