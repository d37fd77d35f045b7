#pragma once

// Vector operations with AVX-512F. Include only from a file compiled for it: the type is local to
// the file (anonymous namespace), so no template over it is ever merged with that of another
// instruction set. simd_avx2.h and simd_portable.h offer the same members.

#include <immintrin.h>

#include <cstdint>

namespace fovea::cpu {
namespace {

struct Simd {
  using Reg = __m512;
  static constexpr int kWidth = 16;
  /// Shape of a register tile: rows x vectors of accumulators, and what they are multiplied with,
  /// fit into 32 registers.
  static constexpr int kTileRows = 8;
  static constexpr int kTileVectors = 3;

  static Reg load(const float* from) { return _mm512_loadu_ps(from); }
  static void store(float* to, Reg a) { _mm512_storeu_ps(to, a); }
  /// The first `count` elements, 0 beyond; count in [0, kWidth].
  static Reg load_some(const float* from, std::int64_t count) {
    return _mm512_maskz_loadu_ps(mask(count), from);
  }
  static void store_some(float* to, Reg a, std::int64_t count) {
    _mm512_mask_storeu_ps(to, mask(count), a);
  }
  static Reg broadcast(float a) { return _mm512_set1_ps(a); }
  static Reg add(Reg a, Reg b) { return _mm512_add_ps(a, b); }
  static Reg sub(Reg a, Reg b) { return _mm512_sub_ps(a, b); }
  static Reg mul(Reg a, Reg b) { return _mm512_mul_ps(a, b); }
  static Reg div(Reg a, Reg b) { return _mm512_div_ps(a, b); }
  /// a * b + c, rounded once where the hardware can.
  static Reg fma(Reg a, Reg b, Reg c) { return _mm512_fmadd_ps(a, b, c); }
  /// The second operand where either is NaN; min alike.
  static Reg max(Reg a, Reg b) { return _mm512_max_ps(a, b); }
  static Reg min(Reg a, Reg b) { return _mm512_min_ps(a, b); }
  static Reg abs(Reg a) { return _mm512_abs_ps(a); }
  /// yes[i] where x[i] has its sign bit set, no[i] elsewhere.
  static Reg where_negative(Reg x, Reg yes, Reg no) {
    return _mm512_mask_blend_ps(_mm512_movepi32_mask(_mm512_castps_si512(x)), no, yes);
  }
  /// To the nearest integer, halves to even.
  static Reg round(Reg a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  /// a * 2^n for integral n <= 127: 0 where that is too small, and for n = -infinity whatever a is.
  static Reg scale(Reg a, Reg n) { return _mm512_scalef_ps(a, n); }
  /// Sum of the elements, in a fixed order.
  static float sum(Reg a) {
    alignas(64) float parts[kWidth];
    _mm512_store_ps(parts, a);
    for (int half = kWidth / 2; half > 0; half /= 2) {
      for (int i = 0; i < half; ++i) parts[i] += parts[half + i];
    }
    return parts[0];
  }
  /// Exchanges rows and columns of kWidth rows.
  static void transpose(Reg (&a)[kWidth]) {
    Reg b[kWidth];
    for (int i = 0; i < 16; i += 2) {  // pairs of rows interleaved, 32 bits at a time
      b[i] = _mm512_unpacklo_ps(a[i], a[i + 1]);
      b[i + 1] = _mm512_unpackhi_ps(a[i], a[i + 1]);
    }
    for (int i = 0; i < 16; i += 4) {  // 64 bits: a[i + j] has columns j, 4 + j, 8 + j, 12 + j
      a[i] = unpack_low_pairs(b[i], b[i + 2]);
      a[i + 1] = unpack_high_pairs(b[i], b[i + 2]);
      a[i + 2] = unpack_low_pairs(b[i + 1], b[i + 3]);
      a[i + 3] = unpack_high_pairs(b[i + 1], b[i + 3]);
    }
    constexpr int kEven = 0x88;  // 128-bit parts 0 and 2 of both operands
    constexpr int kOdd = 0xdd;   // parts 1 and 3
    for (int j = 0; j < 4; ++j) {
      b[j] = _mm512_shuffle_f32x4(a[j], a[4 + j], kEven);
      b[4 + j] = _mm512_shuffle_f32x4(a[j], a[4 + j], kOdd);
      b[8 + j] = _mm512_shuffle_f32x4(a[8 + j], a[12 + j], kEven);
      b[12 + j] = _mm512_shuffle_f32x4(a[8 + j], a[12 + j], kOdd);
    }
    for (int j = 0; j < 4; ++j) {
      a[j] = _mm512_shuffle_f32x4(b[j], b[8 + j], kEven);
      a[8 + j] = _mm512_shuffle_f32x4(b[j], b[8 + j], kOdd);
      a[4 + j] = _mm512_shuffle_f32x4(b[4 + j], b[12 + j], kEven);
      a[12 + j] = _mm512_shuffle_f32x4(b[4 + j], b[12 + j], kOdd);
    }
  }

 private:
  static Reg unpack_low_pairs(Reg a, Reg b) {
    return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  }
  static Reg unpack_high_pairs(Reg a, Reg b) {
    return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
  }
  static __mmask16 mask(std::int64_t count) {
    return static_cast<__mmask16>((1u << static_cast<unsigned>(count)) - 1u);
  }
};

}  // namespace
}  // namespace fovea::cpu
