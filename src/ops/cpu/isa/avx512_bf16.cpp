// AVX-512 with AVX512-BF16.
#include "ops/cpu/simd/avx512_bf16.h"
// The bodies are templates over types of this file.
#include "ops/cpu/gemm/bf16.h"
#include "ops/cpu/isa/isa_kernels.h"

namespace fovea::cpu {

constinit const IsaUnit kAvx512Bf16Unit{
    .name = "avx512_bf16",
    .required = kAvx512 | kAvx512Bf16,
    .worthwhile = kFastVdpbf16ps,
    .kernels = {.rows = {},
                .attention = {},
                .attention16 = {},
                .f32 = {},
                // 28 accumulators, two vectors of weights, one of x.
                .bf16 = bf16_kernel<Bf16Simd, 14>("avx512_bf16", /*is_fast=*/true),
                .int8 = {}}};

}  // namespace fovea::cpu
