#pragma once

// AVX-512 with VNNI: 64 products of bytes, or 32 of 16 bits, and their sums in one instruction.

#include "ops/cpu/simd/avx512.h"

namespace fovea::cpu {
namespace {

struct VnniSimd : Simd {
  static Int dot_int8(Int sum, Int x, Int w) {
    return ints(_mm512_dpbusd_epi32(bits(sum), bits(x), bits(w)));
  }
  static Int dot_int16(Int sum, Int a, Int b) {
    return ints(_mm512_dpwssd_epi32(bits(sum), bits(a), bits(b)));
  }
};

}  // namespace
}  // namespace fovea::cpu
