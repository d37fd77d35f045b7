// The bf16 linear layer for AVX2: pairs are widened to f32, so here bf16 saves memory, not time.
#include "ops/cpu/vector/simd_avx2.h"
// The body is made of templates over a type of this file.
#include "ops/cpu/bf16/body.h"

namespace fovea::cpu {

namespace {

struct Bf16Simd : Simd {
  using Pairs = __m256i;
  static constexpr int kTileRows = 4;  // 8 accumulators, four vectors of weights, two of x

  static void prefetch(const std::byte* p) {
    _mm_prefetch(reinterpret_cast<const char*>(p), _MM_HINT_T1);
  }
  static Pairs load_pairs(const std::byte* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  }
  static Pairs broadcast_pair(const std::byte* p) {
    int pair = 0;
    __builtin_memcpy(&pair, p, sizeof(pair));
    return _mm256_set1_epi32(pair);
  }
  static Reg dot(Reg sum, Pairs x, Pairs w) {
    return fma(first(x), first(w), fma(second(x), second(w), sum));
  }
  static void store_bf16(std::byte* p, Reg a) {
    const __m256i bits = _mm256_castps_si256(a);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i half = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a, a, _CMP_UNORD_Q));
    const __m256i exponent = _mm256_and_si256(bits, _mm256_set1_epi32(0x7f800000));
    const __m256i tiny = _mm256_cmpeq_epi32(exponent, _mm256_setzero_si256());
    __m256i rounded = _mm256_add_epi32(bits, half);
    rounded = _mm256_blendv_epi8(rounded, _mm256_or_si256(bits, _mm256_set1_epi32(0x400000)), nan);
    rounded = _mm256_andnot_si256(_mm256_and_si256(tiny, _mm256_set1_epi32(0x7fffffff)), rounded);
    rounded = _mm256_srli_epi32(rounded, 16);
    const __m128i words =
        _mm_packus_epi32(_mm256_castsi256_si128(rounded), _mm256_extracti128_si256(rounded, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), words);
  }

 private:
  static Reg first(Pairs a) { return _mm256_castsi256_ps(_mm256_slli_epi32(a, 16)); }
  static Reg second(Pairs a) {
    return _mm256_castsi256_ps(_mm256_and_si256(a, _mm256_set1_epi32(-65536)));
  }
};

}  // namespace

constinit const Bf16Leaf kBf16Avx2{&round_rows<Bf16Simd>,
                                   &multiply_bf16<Bf16Simd, Bf16VectorTiles<Bf16Simd>>,
                                   Bf16Simd::kTileRows, kBf16TaskRows, "avx2"};

}  // namespace fovea::cpu
