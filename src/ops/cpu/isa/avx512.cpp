// AVX-512: F, BW, VL and DQ.
#include "ops/cpu/simd/simd_avx512.h"
// The bodies are templates over types of this file.
#include "ops/cpu/bf16/body.h"
#include "ops/cpu/isa/isa_kernels.h"
#include "ops/cpu/linear/body.h"
#include "ops/cpu/vector/body.h"

namespace fovea::cpu {

namespace {

struct LinearSimd : Simd {
  static constexpr int kTileRows = 14;  // 28 accumulators, two vectors of weights, one of x
  // Partial sums wait in memory half as often as with blocks that fit into L1. These processors
  // have the L2 for it, nearly all 1 MB or more.
  static constexpr std::int64_t kBlockK = 512;
  static constexpr std::int64_t kTaskPanels = 32;
};

/// Pairs of bf16 numbers are widened to f32, so here bf16 saves memory, not time.
struct Bf16Simd : Simd {
  static constexpr int kTileRows = 12;  // 24 accumulators, four vectors of weights, two of x
};

}  // namespace

constinit const IsaUnit kAvx512Unit{
    .name = "avx512",
    .required = kAvx512,
    .worthwhile = 0,
    .kernels = {
        .vector = make_vector_kernels<Simd>(),
        .linear = {&run_linear_task<LinearSimd>, LinearSimd::kTileRows, LinearSimd::kTaskPanels},
        .bf16 = {&round_rows<Bf16Simd>, &multiply_bf16<Bf16Simd, Bf16VectorTiles<Bf16Simd>>,
                 Bf16Simd::kTileRows, kBf16TaskRows, "avx512"},
        .int8 = {},
        .attention16 = {}}};

}  // namespace fovea::cpu
