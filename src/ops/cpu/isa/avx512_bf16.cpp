// AVX-512 with AVX512-BF16.
#include "ops/cpu/simd/simd_avx512_bf16.h"
// The bodies are templates over types of this file.
#include "ops/cpu/bf16/body.h"
#include "ops/cpu/isa/isa_kernels.h"

namespace fovea::cpu {

namespace {

struct TileSimd : Bf16Simd {
  static constexpr int kTileRows = 14;  // 28 accumulators, two vectors of weights, one of x
};

}  // namespace

constinit const IsaUnit kAvx512Bf16Unit{
    .name = "avx512_bf16",
    .required = kAvx512 | kAvx512Bf16,
    .worthwhile = kFastVdpbf16ps,
    .kernels = {.vector = {},
                .linear = {},
                .bf16 = {&round_rows<TileSimd>, &multiply_bf16<TileSimd, Bf16VectorTiles<TileSimd>>,
                         TileSimd::kTileRows, kBf16TaskRows, "avx512_bf16",
                         /*multiplies_bf16=*/true},
                .int8 = {},
                .attention16 = {}}};

}  // namespace fovea::cpu
