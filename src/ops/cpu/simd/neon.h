#pragma once

// Vector operations with NEON, which every 64-bit ARM has; see avx512.h for how to include and what
// members mean.

#include <arm_neon.h>

#include <cstddef>
#include <cstdint>

namespace fovea::cpu {
namespace {

struct Simd {
  using Reg = float32x4_t;
  static constexpr int kWidth = 4;
  static constexpr int kTileRows = 4;  // 12 accumulators of 32 registers
  static constexpr int kTileVectors = 3;

  static Reg load(const float* from) { return vld1q_f32(from); }
  static void store(float* to, Reg a) { vst1q_f32(to, a); }
  static Reg load_some(const float* from, std::int64_t count) {
    Reg a = vdupq_n_f32(0.0f);
    if (count > 0) a = vld1q_lane_f32(from, a, 0);
    if (count > 1) a = vld1q_lane_f32(from + 1, a, 1);
    if (count > 2) a = vld1q_lane_f32(from + 2, a, 2);
    if (count > 3) a = vld1q_lane_f32(from + 3, a, 3);
    return a;
  }
  static void store_some(float* to, Reg a, std::int64_t count) {
    if (count > 0) vst1q_lane_f32(to, a, 0);
    if (count > 1) vst1q_lane_f32(to + 1, a, 1);
    if (count > 2) vst1q_lane_f32(to + 2, a, 2);
    if (count > 3) vst1q_lane_f32(to + 3, a, 3);
  }
  static Reg broadcast(float a) { return vdupq_n_f32(a); }
  static Reg add(Reg a, Reg b) { return vaddq_f32(a, b); }
  static Reg sub(Reg a, Reg b) { return vsubq_f32(a, b); }
  static Reg mul(Reg a, Reg b) { return vmulq_f32(a, b); }
  static Reg div(Reg a, Reg b) { return vdivq_f32(a, b); }
  static Reg fma(Reg a, Reg b, Reg c) { return vfmaq_f32(c, a, b); }
  static float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
  static Reg fnma(Reg a, Reg b, Reg c) { return vfmsq_f32(c, a, b); }
  // FMAX and FMIN would give NaN where either operand is one.
  static Reg max(Reg a, Reg b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
  static Reg min(Reg a, Reg b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
  static Reg abs(Reg a) { return vabsq_f32(a); }
  static Reg where_negative(Reg x, Reg yes, Reg no) {
    return vbslq_f32(vcltzq_s32(vreinterpretq_s32_f32(x)), yes, no);
  }
  static Reg round(Reg a) { return vrndnq_f32(a); }
  static Reg scale(Reg a, Reg n) {
    // The exponent field of 2^n is n + 127; below 2^-126 the result counts as too small.
    const int32x4_t exponent = vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(127));
    const Reg scaled = vmulq_f32(a, vreinterpretq_f32_s32(vshlq_n_s32(exponent, 23)));
    const uint32x4_t tiny = vcltq_f32(n, vdupq_n_f32(-126.0f));
    return vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(scaled), tiny));
  }
  static float sum(Reg a) {
    const float32x2_t s = vadd_f32(vget_low_f32(a), vget_high_f32(a));
    return vget_lane_f32(s, 0) + vget_lane_f32(s, 1);
  }
  static void transpose(Reg (&a)[kWidth]) {
    const Reg even01 = vtrn1q_f32(a[0], a[1]);  // columns 0 and 2 of two rows
    const Reg odd01 = vtrn2q_f32(a[0], a[1]);
    const Reg even23 = vtrn1q_f32(a[2], a[3]);
    const Reg odd23 = vtrn2q_f32(a[2], a[3]);
    a[0] = low_pairs(even01, even23);
    a[1] = low_pairs(odd01, odd23);
    a[2] = high_pairs(even01, even23);
    a[3] = high_pairs(odd01, odd23);
  }

  using Int = int32x4_t;
  static Int zero() { return vdupq_n_s32(0); }
  static Int load_int(const void* p) {
    Int a;
    __builtin_memcpy(&a, p, sizeof(a));
    return a;
  }
  static void store_int(void* p, Int a) { __builtin_memcpy(p, &a, sizeof(a)); }
  static Int broadcast_int(const void* p) {
    std::int32_t value = 0;
    __builtin_memcpy(&value, p, sizeof(value));
    return vdupq_n_s32(value);
  }
  static Reg to_float(Int a) { return vcvtq_f32_s32(a); }
  static void prefetch(const std::byte* p) {
    constexpr int kIntoL2 = 2;
    __builtin_prefetch(p, 0, kIntoL2);
  }

  static Reg lower_bf16(Int a) { return vreinterpretq_f32_s32(vshlq_n_s32(a, 16)); }
  static Reg upper_bf16(Int a) { return vreinterpretq_f32_s32(vandq_s32(a, vdupq_n_s32(-65536))); }
  static Reg dot_bf16(Reg sum, Int x, Int w) {
    return fma(lower_bf16(x), lower_bf16(w), fma(upper_bf16(x), upper_bf16(w), sum));
  }
  static void store_bf16(std::byte* p, Reg a) {
    const uint32x4_t from = vreinterpretq_u32_f32(a);
    const uint32x4_t odd = vandq_u32(vshrq_n_u32(from, 16), vdupq_n_u32(1));
    const uint32x4_t half = vaddq_u32(odd, vdupq_n_u32(0x7fff));
    const uint32x4_t is_number = vceqq_f32(a, a);
    const uint32x4_t is_normal = vtstq_u32(from, vdupq_n_u32(0x7f800000));
    uint32x4_t rounded = vaddq_u32(from, half);
    rounded = vbslq_u32(is_number, rounded, vorrq_u32(from, vdupq_n_u32(0x400000)));
    rounded = vbslq_u32(is_normal, rounded, vandq_u32(from, vdupq_n_u32(0x80000000)));
    const uint16x4_t words = vshrn_n_u32(rounded, 16);
    __builtin_memcpy(p, &words, sizeof(words));
  }

  /// Products of a byte and a signed byte fit 16 bits: 255 * 128 < 2^15.
  static Int dot_int8(Int sum, Int x, Int w) {
    const int16x8_t x_even = vandq_s16(shorts(x), vdupq_n_s16(0xff));
    const int16x8_t x_odd = vreinterpretq_s16_u16(vshrq_n_u16(vreinterpretq_u16_s32(x), 8));
    const int16x8_t w_even = vshrq_n_s16(vshlq_n_s16(shorts(w), 8), 8);
    const int16x8_t w_odd = vshrq_n_s16(shorts(w), 8);
    sum = vpadalq_s16(sum, vmulq_s16(x_even, w_even));
    return vpadalq_s16(sum, vmulq_s16(x_odd, w_odd));
  }
  static Int add_int8(Int sum, std::int32_t excess, Int w, int i) {
    const Int left = vshlq_s32(w, vdupq_n_s32(24 - 8 * i));
    return vmlaq_n_s32(sum, vshrq_n_s32(left, 24), excess);
  }
  static Int add_bytes(Int sum, const std::uint8_t* p) {
    return vreinterpretq_s32_u32(vpadalq_u16(vreinterpretq_u32_s32(sum), vpaddlq_u8(vld1q_u8(p))));
  }
  static void store_bytes(std::uint8_t* p, const Reg (&a)[4]) {
    const int16x8_t low = vcombine_s16(vqmovn_s32(nearest(a[0])), vqmovn_s32(nearest(a[1])));
    const int16x8_t high = vcombine_s16(vqmovn_s32(nearest(a[2])), vqmovn_s32(nearest(a[3])));
    vst1q_u8(p, vcombine_u8(vqmovun_s16(low), vqmovun_s16(high)));
  }
  static float smallest(Reg a) { return vminvq_f32(a); }
  static float largest(Reg a) { return vmaxvq_f32(a); }
  static int count_outside(Reg a, Reg low, Reg high) {
    const uint32x4_t outside = vorrq_u32(vcltq_f32(a, low), vcgtq_f32(a, high));
    return -vaddvq_s32(vreinterpretq_s32_u32(outside));
  }

  static Int ones() { return vdupq_n_s32(0x00010001); }
  static Int dot_int16(Int sum, Int a, Int b) {
    const Int low = vmull_s16(vget_low_s16(shorts(a)), vget_low_s16(shorts(b)));
    const Int high = vmull_high_s16(shorts(a), shorts(b));
    return vaddq_s32(sum, vpaddq_s32(low, high));
  }
  static Int pair(Reg first, Reg second) {
    return vsliq_n_s32(nearest(first), nearest(second), 16);
  }
  static void store_shorts(void* p, Reg a) {
    const int16x4_t narrow = vmovn_s32(nearest(a));
    __builtin_memcpy(p, &narrow, sizeof(narrow));
  }
  static Reg with_larger_bits(Reg a, Reg b) {
    return vreinterpretq_f32_s32(vmaxq_s32(vreinterpretq_s32_f32(a), vreinterpretq_s32_f32(b)));
  }

  static int16x8_t shorts(Int a) { return vreinterpretq_s16_s32(a); }

 private:
  /// Rounded to nearest even; NaN to 0.
  static Int nearest(Reg a) { return vcvtnq_s32_f32(a); }
  static Reg low_pairs(Reg a, Reg b) { return vcombine_f32(vget_low_f32(a), vget_low_f32(b)); }
  static Reg high_pairs(Reg a, Reg b) { return vcombine_f32(vget_high_f32(a), vget_high_f32(b)); }
};

}  // namespace
}  // namespace fovea::cpu
