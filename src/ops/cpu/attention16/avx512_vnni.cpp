// Attention in 16-bit integers for AVX-512 with VNNI: 32 products and their sums in one
// instruction.
#include "ops/cpu/attention16/int16_avx512.h"
// The body is made of templates over a type of that file.
#include "ops/cpu/attention16/body.h"
#include "ops/cpu/attention16/pair_products.h"

namespace fovea::cpu {

constinit const Attention16Leaf kAttention16Avx512Vnni{
    &attention16_task<Int16Avx512, PairProducts<Int16Avx512>>, "avx512_vnni"};

}  // namespace fovea::cpu
