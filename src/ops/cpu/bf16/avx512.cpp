// The bf16 linear layer for AVX-512 without AVX512-BF16: pairs are widened to f32, so here bf16
// saves memory, not time.
#include "ops/cpu/bf16/bf16_avx512.h"
// The body is made of templates over a type of this file.
#include "ops/cpu/bf16/body.h"

namespace fovea::cpu {

namespace {

struct Bf16Simd : PairsAvx512 {
  static constexpr int kTileRows = 12;  // 24 accumulators, four vectors of weights, two of x

  static Reg dot(Reg sum, Pairs x, Pairs w) {
    return fma(first(x), first(w), fma(second(x), second(w), sum));
  }
  static void store_bf16(std::byte* p, Reg a) {
    const __m512i bits = _mm512_castps_si512(a);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i half = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    const __mmask16 nan = _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q);
    const __mmask16 tiny = _mm512_testn_epi32_mask(bits, _mm512_set1_epi32(0x7f800000));
    __m512i rounded = _mm512_add_epi32(bits, half);
    rounded = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
    rounded = _mm512_mask_and_epi32(rounded, tiny, bits, _mm512_set1_epi32(-0x7fffffff - 1));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                        _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16)));
  }

 private:
  static Reg first(Pairs a) { return _mm512_castsi512_ps(_mm512_slli_epi32(a, 16)); }
  static Reg second(Pairs a) {
    return _mm512_castsi512_ps(_mm512_and_si512(a, _mm512_set1_epi32(-65536)));
  }
};

}  // namespace

constinit const Bf16Leaf kBf16Avx512{&round_rows<Bf16Simd>,
                                     &multiply_bf16<Bf16Simd, Bf16VectorTiles<Bf16Simd>>,
                                     Bf16Simd::kTileRows, kBf16TaskRows, "avx512"};

}  // namespace fovea::cpu
