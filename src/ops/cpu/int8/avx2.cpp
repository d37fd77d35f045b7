// The int8 linear layer for AVX2 without VNNI. vpmaddubsw would saturate at 16 bits, so products
// are made of 16-bit halves, which is no faster than f32: here int8 saves memory, not time.
#include "ops/cpu/int8/int8_avx2.h"
// The body is made of templates over a type of this file.
#include "ops/cpu/int8/body.h"

namespace fovea::cpu {

namespace {

struct Int8Simd : Int8Avx2 {
  static constexpr int kTileRows = 4;  // 8 accumulators, four vectors of weights, two of x

  static Int dot(Int sum, Int x, Int w) {
    const Int x_even = _mm256_and_si256(x, _mm256_set1_epi16(0xff));
    const Int x_odd = _mm256_srli_epi16(x, 8);
    const Int w_even = _mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8);
    const Int w_odd = _mm256_srai_epi16(w, 8);
    sum = _mm256_add_epi32(sum, _mm256_madd_epi16(x_even, w_even));
    return _mm256_add_epi32(sum, _mm256_madd_epi16(x_odd, w_odd));
  }
};

}  // namespace

constinit const Int8Leaf kInt8Avx2{&quantize_rows<Int8Simd>,
                                   &multiply_int8<Int8Simd, VectorTiles<Int8Simd>>,
                                   Int8Simd::kTileRows, kInt8TaskRows, "avx2"};

}  // namespace fovea::cpu
