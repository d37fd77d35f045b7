#pragma once

// Pairs of bf16 numbers in vectors of 512 bits, all but arithmetic on them. Include from a leaf.

#include <cstddef>

#include "ops/cpu/vector/simd_avx512.h"

namespace fovea::cpu {
namespace {

struct PairsAvx512 : Simd {
  using Pairs = __m512i;

  static void prefetch(const std::byte* p) {
    _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
  }
  static Pairs load_pairs(const std::byte* p) { return _mm512_loadu_si512(p); }
  static Pairs broadcast_pair(const std::byte* p) {
    int pair = 0;
    __builtin_memcpy(&pair, p, sizeof(pair));
    return _mm512_set1_epi32(pair);
  }
};

}  // namespace
}  // namespace fovea::cpu
