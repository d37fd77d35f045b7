#pragma once

// Vector operations with AVX-512: F, BW, VL and DQ. Include only from the unit of an instruction
// set: the type is local to the file (anonymous namespace), so no template over it is ever merged
// with that of another instruction set. avx2.h and portable.h offer the same members.

#include <immintrin.h>

#include <cstddef>
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
  static float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  /// c - a * b, likewise.
  static Reg fnma(Reg a, Reg b, Reg c) { return _mm512_fnmadd_ps(a, b, c); }
  /// The second operand where either is NaN; min alike.
  static Reg max(Reg a, Reg b) { return _mm512_max_ps(a, b); }
  static Reg min(Reg a, Reg b) { return _mm512_min_ps(a, b); }
  static Reg abs(Reg a) { return _mm512_abs_ps(a); }
  /// yes[i] where x[i] has its sign bit set, no[i] elsewhere.
  static Reg where_negative(Reg x, Reg yes, Reg no) {
    return _mm512_mask_blend_ps(_mm512_movepi32_mask(_mm512_castps_si512(x)), no, yes);
  }
  /// Rounds to the nearest integer, halves to even.
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

  /// Integers of 32 bits. With __m512i, vectors of 64 bits, g++ 12 copies an accumulator before and
  /// after every product, and spills.
  using Int [[gnu::vector_size(64)]] = int;
  static Int zero() { return Int{}; }
  static Int load_int(const void* p) { return ints(_mm512_loadu_si512(p)); }
  static void store_int(void* p, Int a) { _mm512_storeu_si512(p, bits(a)); }
  /// Every lane gets the same 32 bits.
  static Int broadcast_int(const void* p) {
    int value = 0;
    __builtin_memcpy(&value, p, sizeof(value));
    return ints(_mm512_set1_epi32(value));
  }
  static Reg to_float(Int a) { return _mm512_cvtepi32_ps(bits(a)); }
  /// Into the level-2 cache; any address.
  static void prefetch(const std::byte* p) {
    _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
  }

  // Two bf16 numbers in every lane.

  /// The number in the lower half, as f32; that in the upper half.
  static Reg lower_bf16(Int a) { return _mm512_castsi512_ps(_mm512_slli_epi32(bits(a), 16)); }
  static Reg upper_bf16(Int a) {
    return _mm512_castsi512_ps(_mm512_and_si512(bits(a), _mm512_set1_epi32(-65536)));
  }
  /// fma(x[0], w[0], fma(x[1], w[1], sum))
  static Reg dot_bf16(Reg sum, Int x, Int w) {
    return fma(lower_bf16(x), lower_bf16(w), fma(upper_bf16(x), upper_bf16(w), sum));
  }
  /// kWidth numbers, rounded to nearest even, denormal ones as zero.
  static void store_bf16(std::byte* p, Reg a) {
    const __m512i from = _mm512_castps_si512(a);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(from, 16), _mm512_set1_epi32(1));
    const __m512i half = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    const __mmask16 nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
    const __mmask16 tiny = _mm512_testn_epi32_mask(from, _mm512_set1_epi32(0x7f800000));
    __m512i rounded = _mm512_add_epi32(from, half);
    rounded = _mm512_mask_or_epi32(rounded, nan, from, _mm512_set1_epi32(0x400000));
    rounded = _mm512_mask_and_epi32(rounded, tiny, from, _mm512_set1_epi32(-0x7fffffff - 1));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16)));
  }

  // Four integers of 8 bits in every lane. The product, dot_int8(sum, x, w), is that of the unit:
  // sum
  // + x . w, exact, of unsigned x and signed w.

  /// sum + excess times the signed integer i of every lane.
  static Int add_int8(Int sum, std::int32_t excess, Int w, int i) {
    const __m512i left = _mm512_sll_epi32(bits(w), _mm_cvtsi32_si128(24 - 8 * i));
    return sum + ints(_mm512_mullo_epi32(_mm512_srai_epi32(left, 24), _mm512_set1_epi32(excess)));
  }
  /// sum + 4 kWidth unsigned bytes from p on, added to any lanes.
  static Int add_bytes(Int sum, const std::uint8_t* p) {
    return sum + ints(_mm512_sad_epu8(_mm512_loadu_si512(p), _mm512_setzero_si512()));
  }
  /// 4 vectors as bytes, rounded to nearest even, then brought into [0, 255].
  static void store_bytes(std::uint8_t* p, const Reg (&a)[4]) {
    const __m512i low = _mm512_packs_epi32(_mm512_cvtps_epi32(a[0]), _mm512_cvtps_epi32(a[1]));
    const __m512i high = _mm512_packs_epi32(_mm512_cvtps_epi32(a[2]), _mm512_cvtps_epi32(a[3]));
    // Packing leaves four bytes of every vector in each part of 128 bits.
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    _mm512_storeu_si512(p, _mm512_permutexvar_epi32(order, _mm512_packus_epi16(low, high)));
  }
  static float smallest(Reg a) { return _mm512_reduce_min_ps(a); }
  static float largest(Reg a) { return _mm512_reduce_max_ps(a); }
  /// How many elements are below low or above high.
  static int count_outside(Reg a, Reg low, Reg high) {
    const __mmask16 below = _mm512_cmp_ps_mask(a, low, _CMP_LT_OQ);
    const __mmask16 above = _mm512_cmp_ps_mask(a, high, _CMP_GT_OQ);
    return __builtin_popcount(static_cast<unsigned>(below) | static_cast<unsigned>(above));
  }

  // Two integers of 16 bits in every lane. The product, dot_int16(sum, a, b), is that of the unit:
  // sum + a . b.

  /// 1 in every half.
  static Int ones() { return Int{} + 0x00010001; }
  /// Both rounded to nearest even, NaN to 0: the lower and the upper half.
  static Int pair(Reg first, Reg second) {
    constexpr __mmask32 kUpperHalves = 0xaaaaaaaa;
    return ints(_mm512_mask_blend_epi16(kUpperHalves, _mm512_cvtps_epi32(first),
                                        _mm512_slli_epi32(_mm512_cvtps_epi32(second), 16)));
  }
  /// kWidth integers, rounded to nearest even.
  static void store_shorts(void* p, Reg a) {
    _mm256_storeu_si256(static_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_cvtps_epi32(a)));
  }
  /// The operand with the larger bits, compared as integers, lane by lane.
  static Reg with_larger_bits(Reg a, Reg b) {
    return _mm512_castsi512_ps(_mm512_max_epi32(_mm512_castps_si512(a), _mm512_castps_si512(b)));
  }

  static __m512i bits(Int a) { return reinterpret_cast<__m512i>(a); }
  static Int ints(__m512i a) { return reinterpret_cast<Int>(a); }

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
