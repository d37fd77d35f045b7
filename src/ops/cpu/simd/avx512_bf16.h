#pragma once

// AVX-512 with AVX512-BF16: 32 products of bf16 numbers and their sums in one instruction.

#include "ops/cpu/simd/avx512.h"

namespace fovea::cpu {
namespace {

struct Bf16Simd : Simd {
  static Reg dot_bf16(Reg sum, Int x, Int w) {
    return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(x), reinterpret_cast<__m512bh>(w));
  }
  static void store_bf16(std::byte* p, Reg a) {
    const auto rounded = __builtin_bit_cast(__m256i, _mm512_cvtneps_pbh(a));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), rounded);
  }
};

}  // namespace
}  // namespace fovea::cpu
