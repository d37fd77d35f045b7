// AVX-512: F, BW, VL and DQ.
#include "ops/cpu/simd/avx512.h"
// The bodies are templates over types of this file.
#include "ops/cpu/attention/body.h"
#include "ops/cpu/gemm/bf16.h"
#include "ops/cpu/gemm/f32.h"
#include "ops/cpu/isa/isa_kernels.h"
#include "ops/cpu/rowwise/row_bodies.h"

namespace fovea::cpu {

constinit const IsaUnit kAvx512Unit{
    .name = "avx512",
    .required = kAvx512,
    .worthwhile = 0,
    .kernels = {.rows = row_kernels<Simd>(),
                .attention = attention_kernel<Simd>("avx512"),
                .attention16 = {},
                // 28 accumulators, two vectors of weights, one of x. Partial sums wait in memory
                // half as often as with blocks of k that fit into L1; these processors have the L2
                // for it, nearly all 1 MB or more.
                .f32 = f32_kernel<Simd, 14, 512, 32>("avx512"),
                // 24 accumulators, four vectors of weights, two of x. Pairs of bf16 are widened to
                // f32, so here bf16 saves memory, not time.
                .bf16 = bf16_kernel<Simd, 12>("avx512"),
                .int8 = {}}};

}  // namespace fovea::cpu
