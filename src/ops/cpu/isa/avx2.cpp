// AVX2 and FMA.
#include "ops/cpu/simd/avx2.h"
// The bodies are templates over types of this file.
#include "ops/cpu/attention/body.h"
#include "ops/cpu/attention/int16/body.h"
#include "ops/cpu/attention/int16/pair_products.h"
#include "ops/cpu/gemm/bf16.h"
#include "ops/cpu/gemm/f32.h"
#include "ops/cpu/gemm/int8.h"
#include "ops/cpu/isa/isa_kernels.h"
#include "ops/cpu/rowwise/row_bodies.h"

namespace fovea::cpu {

namespace {

/// vpmaddubsw would saturate at 16 bits, so products of bytes are made of 16-bit halves, which is
/// no faster than f32: here int8 saves memory, not time.
struct IntSimd : Simd {
  static Int dot_int8(Int sum, Int x, Int w) {
    const __m256i x_even = _mm256_and_si256(bits(x), _mm256_set1_epi16(0xff));
    const __m256i x_odd = _mm256_srli_epi16(bits(x), 8);
    const __m256i w_even = _mm256_srai_epi16(_mm256_slli_epi16(bits(w), 8), 8);
    const __m256i w_odd = _mm256_srai_epi16(bits(w), 8);
    sum += ints(_mm256_madd_epi16(x_even, w_even));
    return sum + ints(_mm256_madd_epi16(x_odd, w_odd));
  }
  static Int dot_int16(Int sum, Int a, Int b) {
    return sum + ints(_mm256_madd_epi16(bits(a), bits(b)));
  }
};

}  // namespace

constinit const IsaUnit kAvx2Unit{
    .name = "avx2",
    .required = kAvx2,
    .worthwhile = 0,
    .kernels = {.rows = row_kernels<Simd>(),
                .attention = attention_kernel<Simd>("avx2"),
                .attention16 = attention16_kernel<IntSimd, PairProducts<IntSimd>>("avx2"),
                // 12 accumulators, two vectors of weights, one of x. Blocks are half of those of
                // AVX-512: many of these processors have an L2 of 256 or 512 KB.
                .f32 = f32_kernel<Simd, 6, 256, 16>("avx2"),
                // 8 accumulators, four vectors of weights, two of x. Pairs of bf16 are widened to
                // f32, so here bf16 saves memory, not time.
                .bf16 = bf16_kernel<Simd, 4>("avx2"),
                .int8 = int8_kernel<IntSimd, 4>("avx2")}};

}  // namespace fovea::cpu
