// The linear layer with AVX2 and FMA: register tile of 6 rows x 16 columns, 12 accumulators; a
// panel is passed twice.
#include <immintrin.h>

#include "ops/cpu/linear_body.h"

namespace fovea::cpu {

namespace {

struct Avx2 {
  using Reg = __m256;
  static constexpr int kWidth = 8;
  static constexpr int kTileRows = 6;  // 12 accumulators, two vectors of weights, one of x

  static Reg load(const float* p) { return _mm256_loadu_ps(p); }
  static Reg load_some(const float* p, std::int64_t count) {
    return _mm256_maskload_ps(p, first(count));
  }
  static void store(float* p, Reg a) { _mm256_storeu_ps(p, a); }
  static void store_some(float* p, Reg a, std::int64_t count) {
    _mm256_maskstore_ps(p, first(count), a);
  }
  static Reg broadcast(float a) { return _mm256_set1_ps(a); }
  static Reg add(Reg a, Reg b) { return _mm256_add_ps(a, b); }
  static Reg sub(Reg a, Reg b) { return _mm256_sub_ps(a, b); }
  static Reg mul(Reg a, Reg b) { return _mm256_mul_ps(a, b); }
  static Reg div(Reg a, Reg b) { return _mm256_div_ps(a, b); }
  static Reg fma(Reg a, Reg b, Reg c) { return _mm256_fmadd_ps(a, b, c); }
  static Reg min(Reg a, Reg b) { return _mm256_min_ps(a, b); }
  static Reg max(Reg a, Reg b) { return _mm256_max_ps(a, b); }
  static Reg abs(Reg a) { return _mm256_andnot_ps(_mm256_set1_ps(-0.0f), a); }
  static Reg round(Reg a) {
    return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  /// a * 2^n for an integral n in [-252, 254]: in two steps, so that overflow gives infinity and
  /// underflow rounds once.
  static Reg scale(Reg a, Reg n) {
    const __m256i whole = _mm256_cvtps_epi32(n);
    const __m256i half = _mm256_srai_epi32(whole, 1);
    return mul(mul(a, power_of_two(half)), power_of_two(_mm256_sub_epi32(whole, half)));
  }
  static Reg where_negative(Reg x, Reg yes, Reg no) { return _mm256_blendv_ps(no, yes, x); }
  static void widen_pairs(const std::uint32_t* pairs, float* low, float* high) {
    const __m256i both = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(pairs));
    store(low, _mm256_castsi256_ps(_mm256_slli_epi32(both, 16)));
    store(high, _mm256_castsi256_ps(_mm256_and_si256(both, _mm256_set1_epi32(-65536))));
  }

 private:
  static __m256i first(std::int64_t count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                              _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
  static Reg power_of_two(__m256i n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
  }
};

}  // namespace

const LinearLeaf kLinearAvx2{&run_linear_task<Avx2>, Avx2::kTileRows};

}  // namespace fovea::cpu
