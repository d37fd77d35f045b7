// Attention in 16-bit integers for AVX2 with VNNI: 16 products and their sums in one instruction.
#include "ops/cpu/attention16/int16_avx2.h"
// The body is made of templates over a type of this file.
#include "ops/cpu/attention16/body.h"
#include "ops/cpu/attention16/pair_products.h"

namespace fovea::cpu {

namespace {

struct Int16Simd : Int16Avx2 {
  static Int dot(Int sum, Int a, Int b) {
    return reinterpret_cast<Int>(_mm256_dpwssd_avx_epi32(bits(sum), bits(a), bits(b)));
  }
};

}  // namespace

constinit const Attention16Leaf kAttention16AvxVnni{
    &attention16_task<Int16Simd, PairProducts<Int16Simd>>, "avx_vnni"};

}  // namespace fovea::cpu
