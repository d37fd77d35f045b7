// The linear layer for AVX-512: register tiles of 14 rows x 32 columns.
#include "ops/cpu/vector/simd_avx512.h"
// The body is made of templates over a type of this file.
#include "ops/cpu/linear/body.h"

namespace fovea::cpu {

namespace {

struct LinearSimd : Simd {
  static constexpr int kTileRows = 14;  // 28 accumulators, two vectors of weights, one of x
  // Partial sums wait in memory half as often as with blocks that fit into L1. Processors of
  // this leaf have the L2 for it, nearly all 1 MB or more.
  static constexpr std::int64_t kBlockK = 512;
  static constexpr std::int64_t kTaskPanels = 32;

  static void prefetch(const std::byte* p) {
    _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
  }
  static void widen_pairs(const std::uint32_t* pairs, Reg& low, Reg& high) {
    const __m512i both = _mm512_loadu_si512(pairs);
    low = _mm512_castsi512_ps(_mm512_slli_epi32(both, 16));
    high = _mm512_castsi512_ps(_mm512_and_si512(both, _mm512_set1_epi32(-65536)));
  }
};

}  // namespace

constinit const LinearLeaf kLinearAvx512{&run_linear_task<LinearSimd>, LinearSimd::kTileRows,
                                         LinearSimd::kTaskPanels};

}  // namespace fovea::cpu
