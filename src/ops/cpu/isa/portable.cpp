// Kernels for every processor: they have the bits of the other units, with the instructions that
// the compiler finds.
#include "ops/cpu/simd/portable.h"
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

constinit const IsaUnit kPortableUnit{
    .name = "portable",
    .required = 0,
    .worthwhile = 0,
    .kernels = {.rows = row_kernels<Simd>(),
                .attention = attention_kernel<Simd>("portable"),
                .attention16 = attention16_kernel<FusedSimd, PairProducts<FusedSimd>>("portable"),
                // 8 accumulators of 16 registers; blocks as for AVX2.
                .f32 = f32_kernel<Simd, 4, 256, 16>("portable"),
                .bf16 = bf16_kernel<FusedSimd, 4>("portable"),
                .int8 = int8_kernel<FusedSimd, 4>("portable")}};

}  // namespace fovea::cpu
