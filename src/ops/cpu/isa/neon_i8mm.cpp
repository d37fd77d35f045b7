// NEON with USMMLA: 32 products of bytes and their sums in one instruction.
#include "ops/cpu/simd/neon.h"
// The bodies are templates over types of this file.
#include "ops/cpu/gemm/int8.h"
#include "ops/cpu/gemm/matrix_tiles.h"
#include "ops/cpu/isa/isa_kernels.h"

namespace fovea::cpu {

namespace {

struct ByteMatrices {
  using Vector = Simd;
  using Sum = std::int32_t;
  using Sums = int32x4_t;

  static Sums zero() { return vdupq_n_s32(0); }
  static Sums multiply(Sums sums, Simd::Int x, Simd::Int w) {
    return vusmmlaq_s32(sums, vreinterpretq_u8_s32(x), vreinterpretq_s8_s32(w));
  }
  template <int kRow>
  static void store_row(Sum* p, Sums sums) {
    vst1_s32(p, kRow == 0 ? vget_low_s32(sums) : vget_high_s32(sums));
  }
};

}  // namespace

constinit const IsaUnit kNeonI8mmUnit{
    .name = "neon_i8mm",
    .required = kNeon | kNeonI8mm,
    .worthwhile = 0,
    .kernels = {.rows = {},
                .attention = {},
                .attention16 = {},
                .f32 = {},
                .bf16 = {},
                // 9 tiles share what is fetched of the weights: as many rows as of the others.
                .int8 = int8_kernel<Simd, MatrixTiles<ByteMatrices>>("neon_i8mm", 108)}};

}  // namespace fovea::cpu
