#pragma once

// Vector operations with AVX2 and FMA; see simd_avx512.h for how to include and what members mean.

#include <immintrin.h>

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

 private:
  static __m256i mask(std::int64_t count) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), lane);
  }
};

}  // namespace
}  // namespace fovea::cpu
