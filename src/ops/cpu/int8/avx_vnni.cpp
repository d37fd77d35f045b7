// The int8 linear layer for AVX2 with VNNI: register tiles of 6 rows x 16 columns, 32 products in
// one instruction.
#include "ops/cpu/int8/int8_avx2.h"
// The body is made of templates over a type of this file.
#include "ops/cpu/int8/body.h"

namespace fovea::cpu {

namespace {

struct Int8Simd : Int8Avx2 {
  static constexpr int kTileRows = 6;  // 12 accumulators, two vectors of weights, one of x

  static Int dot(Int sum, Int x, Int w) { return _mm256_dpbusd_avx_epi32(sum, x, w); }
};

}  // namespace

constinit const Int8Leaf kInt8AvxVnni{&quantize_rows<Int8Simd>,
                                      &multiply_int8<Int8Simd, VectorTiles<Int8Simd>>,
                                      Int8Simd::kTileRows, kInt8TaskRows, "avx_vnni"};

}  // namespace fovea::cpu
