// The bf16 linear layer for processors without a leaf of their own: the bits of the other leaves of
// vectors, with whatever instructions there are.
#include "ops/cpu/bf16/bf16_portable.h"
// The body is made of templates over a type of this file.
#include "ops/cpu/bf16/body.h"

namespace fovea::cpu {

constinit const Bf16Leaf kBf16Portable{
    &round_rows<PairsPortable>, &multiply_bf16<PairsPortable, Bf16VectorTiles<PairsPortable>>,
    PairsPortable::kTileRows, kBf16TaskRows, "portable"};

}  // namespace fovea::cpu
