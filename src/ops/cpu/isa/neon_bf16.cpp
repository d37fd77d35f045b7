// NEON with BFMMLA: 16 products of bf16 and their sums in one instruction.
#include "ops/cpu/simd/neon.h"
// The bodies are templates over types of this file.
#include "ops/cpu/gemm/bf16.h"
#include "ops/cpu/gemm/matrix_tiles.h"
#include "ops/cpu/isa/isa_kernels.h"

namespace fovea::cpu {

namespace {

struct Bf16Matrices {
  using Vector = Simd;
  using Sum = float;
  using Sums = float32x4_t;

  static Sums zero() { return vdupq_n_f32(0.0f); }
  static Sums multiply(Sums sums, Simd::Int x, Simd::Int w) {
    return vbfmmlaq_f32(sums, vreinterpretq_bf16_s32(x), vreinterpretq_bf16_s32(w));
  }
  template <int kRow>
  static void store_row(Sum* p, Sums sums) {
    vst1_f32(p, kRow == 0 ? vget_low_f32(sums) : vget_high_f32(sums));
  }
};

}  // namespace

constinit const IsaUnit kNeonBf16Unit{
    .name = "neon_bf16",
    .required = kNeon | kNeonBf16,
    .worthwhile = 0,
    .kernels = {
        .rows = {},
        .attention = {},
        .attention16 = {},
        .f32 = {},
        // 5 tiles share what is fetched of the weights, about as many rows as of the others.
        .bf16 = bf16_kernel<Simd, MatrixTiles<Bf16Matrices>>("neon_bf16", 60,
                                                             /*is_fast=*/true),
        .int8 = {}}};

}  // namespace fovea::cpu
