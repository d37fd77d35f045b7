// For every processor: the bits of the other units, with whatever instructions there are.
#include "ops/cpu/simd/simd_portable.h"
// The bodies are templates over types of this file.
#include "ops/cpu/attention16/body.h"
#include "ops/cpu/attention16/pair_products.h"
#include "ops/cpu/bf16/body.h"
#include "ops/cpu/int8/body.h"
#include "ops/cpu/isa/isa_kernels.h"
#include "ops/cpu/linear/body.h"
#include "ops/cpu/vector/body.h"

namespace fovea::cpu {

namespace {

struct LinearSimd : Simd {
  static constexpr int kTileRows = 4;  // 8 accumulators of 16 registers
  // As for AVX2.
  static constexpr std::int64_t kBlockK = 256;
  static constexpr std::int64_t kTaskPanels = 16;
};

constexpr int kTileRows = FusedSimd::kTileRows;

}  // namespace

constinit const IsaUnit kPortableUnit{
    .name = "portable",
    .required = 0,
    .worthwhile = 0,
    .kernels = {
        .vector = make_vector_kernels<Simd>(),
        .linear = {&run_linear_task<LinearSimd>, LinearSimd::kTileRows, LinearSimd::kTaskPanels},
        .bf16 = {&round_rows<FusedSimd>, &multiply_bf16<FusedSimd, Bf16VectorTiles<FusedSimd>>,
                 kTileRows, kBf16TaskRows, "portable"},
        .int8 = {&quantize_rows<FusedSimd>, &multiply_int8<FusedSimd, VectorTiles<FusedSimd>>,
                 kTileRows, kInt8TaskRows, "portable"},
        .attention16 = {&attention16_task<FusedSimd, PairProducts<FusedSimd>>, "portable"}}};

}  // namespace fovea::cpu
