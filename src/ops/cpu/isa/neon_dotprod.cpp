// NEON with SDOT: 16 products of signed bytes and their sums in one instruction.
#include "ops/cpu/simd/neon.h"
// The bodies are templates over types of this file.
#include "ops/cpu/gemm/int8.h"
#include "ops/cpu/isa/isa_kernels.h"

namespace fovea::cpu {

namespace {

/// x - 128 instead of x, which makes it a signed byte. What that takes from a sum is 128 times the
/// sum of the weights of the column.
struct SignedNumbers : Int8Numbers<Simd> {
  static Factors broadcast(const std::byte* p) {
    return veorq_s32(Simd::broadcast_int(p), vdupq_n_s32(static_cast<std::int32_t>(0x80808080u)));
  }
  static Sums multiply_add(Sums sum, Factors x, Factors w) {
    return vdotq_s32(sum, vreinterpretq_s8_s32(x), vreinterpretq_s8_s32(w));
  }
};

/// 28 accumulators, two vectors of weights, one of x. Lives as long as a task.
struct DotTiles : VectorTiles<SignedNumbers, 14> {
  template <class Beside>
  void multiply(const TileOperands& in, Sum* sums, const Beside& beside) {
    VectorTiles::multiply(in, sums, beside);
    if (in.panel != summed_) sum_columns(in.panel, in.depth);
    for (std::int64_t r = 0; r < in.rows; ++r) {
      for (std::int64_t c = 0; c < kPanelColumns; c += Simd::kWidth) {
        Sum* const sum = sums + r * kPanelColumns + c;
        vst1q_s32(sum, vaddq_s32(vld1q_s32(sum), vld1q_s32(missing_ + c)));
      }
    }
  }

 private:
  void sum_columns(const std::byte* panel, std::int64_t depth) {
    const int8x16_t half_of_128 = vdupq_n_s8(64);
    for (std::int64_t c = 0; c < kPanelColumns; c += Simd::kWidth) {
      int32x4_t sum = vdupq_n_s32(0);
      const std::byte* group = panel + c * kGroupBytes;
      for (std::int64_t k = 0; k < depth; ++k, group += kPanelRowBytes)
        sum = vdotq_s32(sum, half_of_128, vreinterpretq_s8_s32(Simd::load_int(group)));
      vst1q_s32(missing_ + c, vaddq_s32(sum, sum));
    }
    summed_ = panel;
  }

  const std::byte* summed_ = nullptr;    // the panel
  std::int32_t missing_[kPanelColumns];  // 128 times the sums of its columns
};

}  // namespace

constinit const IsaUnit kNeonDotProdUnit{
    .name = "neon_dotprod",
    .required = kNeon | kNeonDotProd,
    .worthwhile = 0,
    .kernels = {.rows = {},
                .attention = {},
                .attention16 = {},
                .f32 = {},
                .bf16 = {},
                .int8 = int8_kernel<Simd, DotTiles>("neon_dotprod", 112)}};

}  // namespace fovea::cpu
