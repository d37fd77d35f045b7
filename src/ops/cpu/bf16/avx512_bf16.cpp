// The bf16 linear layer for AVX-512 with AVX512-BF16: register tiles of 14 rows x 32 columns, 32
// products in one instruction.
#include "ops/cpu/bf16/bf16_avx512.h"
// The body is made of templates over a type of this file.
#include "ops/cpu/bf16/body.h"

namespace fovea::cpu {

namespace {

struct Bf16Simd : PairsAvx512 {
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

constinit const Bf16Leaf kBf16Avx512Bf16{&round_rows<Bf16Simd>, &multiply_bf16<Bf16Simd>,
                                         Bf16Simd::kTileRows, "avx512_bf16"};

}  // namespace fovea::cpu
