// AVX2 with VNNI: 32 products of bytes, or 16 of 16 bits, and their sums in one instruction.
#include "ops/cpu/simd/avx2.h"
// The bodies are templates over types of this file.
#include "ops/cpu/attention/int16/body.h"
#include "ops/cpu/attention/int16/pair_products.h"
#include "ops/cpu/gemm/int8.h"
#include "ops/cpu/isa/isa_kernels.h"

namespace fovea::cpu {

namespace {

struct VnniSimd : Simd {
  static Int dot_int8(Int sum, Int x, Int w) {
    return ints(_mm256_dpbusd_avx_epi32(bits(sum), bits(x), bits(w)));
  }
  static Int dot_int16(Int sum, Int a, Int b) {
    return ints(_mm256_dpwssd_avx_epi32(bits(sum), bits(a), bits(b)));
  }
};

}  // namespace

constinit const IsaUnit kAvxVnniUnit{
    .name = "avx_vnni",
    .required = kAvx2 | kAvxVnni,
    .worthwhile = 0,
    .kernels = {.rows = {},
                .attention = {},
                .attention16 = attention16_kernel<VnniSimd, PairProducts<VnniSimd>>("avx_vnni"),
                .f32 = {},
                .bf16 = {},
                // 12 accumulators, two vectors of weights, one of x.
                .int8 = int8_kernel<VnniSimd, 6>("avx_vnni")}};

}  // namespace fovea::cpu
