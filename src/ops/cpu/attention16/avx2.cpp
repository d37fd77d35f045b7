// Attention in 16-bit integers for AVX2 without VNNI: 16 products in one instruction, whose sums
// take another.
#include "ops/cpu/attention16/int16_avx2.h"
// The body is made of templates over a type of this file.
#include "ops/cpu/attention16/body.h"
#include "ops/cpu/attention16/pair_products.h"

namespace fovea::cpu {

namespace {

struct Int16Simd : Int16Avx2 {
  static Int dot(Int sum, Int a, Int b) {
    return sum + reinterpret_cast<Int>(_mm256_madd_epi16(bits(a), bits(b)));
  }
};

}  // namespace

constinit const Attention16Leaf kAttention16Avx2{
    &attention16_task<Int16Simd, PairProducts<Int16Simd>>, "avx2"};

}  // namespace fovea::cpu
