// The int8 linear layer for AVX-512 with VNNI: register tiles of 14 rows x 32 columns, 64 products
// in one instruction.
#include "ops/cpu/int8/int8_avx512.h"
// The body is made of templates over a type of this file.
#include "ops/cpu/int8/body.h"

namespace fovea::cpu {

namespace {

struct Int8Simd : Int8Avx512 {
  static constexpr int kTileRows = 14;  // 28 accumulators, two vectors of weights, one of x

  static Int dot(Int sum, Int x, Int w) { return _mm512_dpbusd_epi32(sum, x, w); }
};

}  // namespace

constinit const Int8Leaf kInt8Avx512Vnni{&quantize_rows<Int8Simd>,
                                         &multiply_int8<Int8Simd, VectorTiles<Int8Simd>>,
                                         Int8Simd::kTileRows, kInt8TaskRows, "avx512_vnni"};

}  // namespace fovea::cpu
