// The linear layer for AVX2 and FMA: register tiles of 6 rows x 16 columns, a panel is passed
// twice.
#include "ops/cpu/vector/simd_avx2.h"
// The body is made of templates over a type of this file.
#include "ops/cpu/linear/body.h"

namespace fovea::cpu {

namespace {

struct LinearSimd : Simd {
  static constexpr int kTileRows = 6;  // 12 accumulators, two vectors of weights, one of x
  // Half of what AVX-512 has: many of these processors have an L2 of 256 or 512 KB.
  static constexpr std::int64_t kBlockK = 256;
  static constexpr std::int64_t kTaskPanels = 16;

  static void prefetch(const std::byte* p) {
    _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
  }
  static void widen_pairs(const std::uint32_t* pairs, Reg& low, Reg& high) {
    const __m256i both = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(pairs));
    low = _mm256_castsi256_ps(_mm256_slli_epi32(both, 16));
    high = _mm256_castsi256_ps(_mm256_and_si256(both, _mm256_set1_epi32(-65536)));
  }
};

}  // namespace

constinit const LinearLeaf kLinearAvx2{&run_linear_task<LinearSimd>, LinearSimd::kTileRows,
                                       LinearSimd::kTaskPanels};

}  // namespace fovea::cpu
