// AVX-512 with VNNI.
#include "ops/cpu/simd/avx512_vnni.h"
// The bodies are templates over types of this file.
#include "ops/cpu/attention/int16/body.h"
#include "ops/cpu/attention/int16/pair_products.h"
#include "ops/cpu/gemm/int8.h"
#include "ops/cpu/isa/isa_kernels.h"

namespace fovea::cpu {

constinit const IsaUnit kAvx512VnniUnit{
    .name = "avx512_vnni",
    .required = kAvx512 | kAvx512Vnni,
    .worthwhile = 0,
    .kernels = {.rows = {},
                .attention = {},
                .attention16 = attention16_kernel<VnniSimd, PairProducts<VnniSimd>>("avx512_vnni"),
                .f32 = {},
                .bf16 = {},
                // 28 accumulators, two vectors of weights, one of x.
                .int8 = int8_kernel<VnniSimd, 14>("avx512_vnni")}};

}  // namespace fovea::cpu
