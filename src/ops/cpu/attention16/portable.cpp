// Attention in 16-bit integers for processors without a leaf of their own: the bits of the other
// leaves, with whatever instructions there are.
#include "ops/cpu/attention16/int16_portable.h"
// The body is made of templates over a type of that file.
#include "ops/cpu/attention16/body.h"
#include "ops/cpu/attention16/pair_products.h"

namespace fovea::cpu {

constinit const Attention16Leaf kAttention16Portable{
    &attention16_task<Int16Portable, PairProducts<Int16Portable>>, "portable"};

}  // namespace fovea::cpu
