// The linear layer with AVX-512: register tile of 14 rows x 32 columns, 28 accumulators.
#include <immintrin.h>

#include "ops/cpu/linear_body.h"

namespace fovea::cpu {

namespace {

struct Avx512 {
  using Reg = __m512;
  static constexpr int kWidth = 16;
  static constexpr int kTileRows = 14;  // 28 accumulators, two vectors of weights, one of x

  static Reg load(const float* p) { return _mm512_loadu_ps(p); }
  static Reg load_some(const float* p, std::int64_t count) {
    return _mm512_maskz_loadu_ps(first(count), p);
  }
  static void store(float* p, Reg a) { _mm512_storeu_ps(p, a); }
  static void store_some(float* p, Reg a, std::int64_t count) {
    _mm512_mask_storeu_ps(p, first(count), a);
  }
  static Reg broadcast(float a) { return _mm512_set1_ps(a); }
  static Reg add(Reg a, Reg b) { return _mm512_add_ps(a, b); }
  static Reg sub(Reg a, Reg b) { return _mm512_sub_ps(a, b); }
  static Reg mul(Reg a, Reg b) { return _mm512_mul_ps(a, b); }
  static Reg div(Reg a, Reg b) { return _mm512_div_ps(a, b); }
  static Reg fma(Reg a, Reg b, Reg c) { return _mm512_fmadd_ps(a, b, c); }
  static Reg min(Reg a, Reg b) { return _mm512_min_ps(a, b); }
  static Reg max(Reg a, Reg b) { return _mm512_max_ps(a, b); }
  static Reg abs(Reg a) { return _mm512_abs_ps(a); }
  static Reg round(Reg a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  /// a * 2^n for an integral n
  static Reg scale(Reg a, Reg n) { return _mm512_scalef_ps(a, n); }
  static Reg where_negative(Reg x, Reg yes, Reg no) {
    return _mm512_mask_blend_ps(_mm512_movepi32_mask(_mm512_castps_si512(x)), no, yes);
  }
  static void widen_pairs(const std::uint32_t* pairs, float* low, float* high) {
    const __m512i both = _mm512_loadu_si512(pairs);
    store(low, _mm512_castsi512_ps(_mm512_slli_epi32(both, 16)));
    store(high, _mm512_castsi512_ps(_mm512_and_si512(both, _mm512_set1_epi32(-65536))));
  }

 private:
  static __mmask16 first(std::int64_t count) {
    return static_cast<__mmask16>((1u << static_cast<unsigned>(count)) - 1u);
  }
};

}  // namespace

const LinearLeaf kLinearAvx512{&run_linear_task<Avx512>, Avx512::kTileRows};

}  // namespace fovea::cpu
