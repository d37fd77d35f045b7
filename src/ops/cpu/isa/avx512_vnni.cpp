// AVX-512 with VNNI.
#include "ops/cpu/simd/simd_avx512_vnni.h"
// The bodies are templates over types of this file.
#include "ops/cpu/attention16/body.h"
#include "ops/cpu/attention16/pair_products.h"
#include "ops/cpu/int8/body.h"
#include "ops/cpu/isa/isa_kernels.h"

namespace fovea::cpu {

namespace {

struct Int8Simd : VnniSimd {
  static constexpr int kTileRows = 14;  // 28 accumulators, two vectors of weights, one of x
};

}  // namespace

constinit const IsaUnit kAvx512VnniUnit{
    .name = "avx512_vnni",
    .required = kAvx512 | kAvx512Vnni,
    .worthwhile = 0,
    .kernels = {
        .vector = {},
        .linear = {},
        .bf16 = {},
        .int8 = {&quantize_rows<Int8Simd>, &multiply_int8<Int8Simd, VectorTiles<Int8Simd>>,
                 Int8Simd::kTileRows, kInt8TaskRows, "avx512_vnni"},
        .attention16 = {&attention16_task<VnniSimd, PairProducts<VnniSimd>>, "avx512_vnni"}}};

}  // namespace fovea::cpu
