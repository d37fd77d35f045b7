// NEON, which every 64-bit ARM has.
#include "ops/cpu/simd/neon.h"
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

constinit const IsaUnit kNeonUnit{
    .name = "neon",
    .required = kNeon,
    .worthwhile = 0,
    .kernels = {.rows = row_kernels<Simd>(),
                .attention = attention_kernel<Simd>("neon"),
                .attention16 = attention16_kernel<Simd, PairProducts<Simd>>("neon"),
                // 28 accumulators of 32 registers, two vectors of weights, one of x; blocks as for
                // AVX2.
                .f32 = f32_kernel<Simd, 14, 256, 16>("neon"),
                // 16 accumulators, four vectors of weights, two of x. Pairs of bf16 are widened to
                // f32, so here bf16 saves memory, not time.
                .bf16 = bf16_kernel<Simd, 8>("neon"),
                .int8 = int8_kernel<Simd, 8>("neon")}};

}  // namespace fovea::cpu
