#pragma once

// Pairs of bf16 numbers in vectors of 512 bits with AVX512-BF16. Include from a leaf.

#include <cstddef>

#include "ops/cpu/bf16/bf16_avx512.h"

namespace fovea::cpu {
namespace {

struct PairsAvx512Bf16 : PairsAvx512 {
  static constexpr int kTileRows = 14;  // 28 accumulators, two vectors of weights, one of x

  static Reg dot(Reg sum, Pairs x, Pairs w) {
    return _mm512_dpbf16_ps(sum, __builtin_bit_cast(__m512bh, x), __builtin_bit_cast(__m512bh, w));
  }
  static void store_bf16(std::byte* p, Reg a) {
    const auto rounded = __builtin_bit_cast(__m256i, _mm512_cvtneps_pbh(a));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), rounded);
  }
};

}  // namespace
}  // namespace fovea::cpu
