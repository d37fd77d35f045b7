// The bf16 linear layer for AVX-512 with AVX512-BF16: register tiles of 14 rows x 32 columns, 32
// products in one instruction.
#include "ops/cpu/bf16/bf16_avx512_bf16.h"
// The body is made of templates over a type of this file.
#include "ops/cpu/bf16/body.h"

namespace fovea::cpu {

constinit const Bf16Leaf kBf16Avx512Bf16{
    &round_rows<PairsAvx512Bf16>,
    &multiply_bf16<PairsAvx512Bf16, Bf16VectorTiles<PairsAvx512Bf16>>,
    PairsAvx512Bf16::kTileRows,
    kBf16TaskRows,
    "avx512_bf16",
    /*multiplies_bf16=*/true};

}  // namespace fovea::cpu
