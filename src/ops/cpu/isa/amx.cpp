// AMX: register tiles of 32 rows x 32 columns in four accumulators, 8192 products of bf16 or 16384
// of bytes in one instruction. All else is done in vectors of 512 bits.
#include "ops/cpu/simd/amx.h"
#include "ops/cpu/simd/avx512_bf16.h"
#include "ops/cpu/simd/avx512_vnni.h"
// The bodies are templates over types of this file.
#include "ops/cpu/attention/bf16/body.h"
#include "ops/cpu/attention/int16/body.h"
#include "ops/cpu/attention/int16/tile_products.h"
#include "ops/cpu/gemm/amx_tiles.h"
#include "ops/cpu/gemm/bf16.h"
#include "ops/cpu/gemm/int8.h"
#include "ops/cpu/isa/isa_kernels.h"

namespace fovea::cpu {

namespace {

struct Bf16Instructions : AmxInstructions {
  using Sum = float;

  template <int kSum, int kX, int kWeights>
  static void multiply() {
    asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kX), "i"(kWeights));
  }
};

struct Int8Instructions : AmxInstructions {
  using Sum = std::int32_t;

  template <int kSum, int kX, int kWeights>
  static void multiply() {
    multiply_us<kSum, kX, kWeights>();
  }
  template <int kSum, int kX, int kY>
  static void multiply_ss() {
    asm volatile("tdpbssd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kX), "i"(kY));
  }
  template <int kSum, int kX, int kY>
  static void multiply_su() {
    asm volatile("tdpbsud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kX), "i"(kY));
  }
  template <int kSum, int kX, int kY>
  static void multiply_us() {
    asm volatile("tdpbusd %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kX), "i"(kY));
  }
  template <int kSum, int kX, int kY>
  static void multiply_uu() {
    asm volatile("tdpbuud %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(kSum), "i"(kX), "i"(kY));
  }
};

struct PairSimd : Bf16Simd {
  static Int pair_bf16(Reg first, Reg second) {
    const auto halves = __builtin_bit_cast(__m512i, _mm512_cvtne2ps_pbh(second, first));
    alignas(64) static constexpr std::int16_t kInTurns[32] = {
        0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    return ints(_mm512_permutexvar_epi16(_mm512_load_si512(kInTurns), halves));
  }
};

/// Attention in 16 bits: 4096 products and their sums in four instructions.
struct PlaneSimd : VnniSimd {
  static void store_planes(std::uint8_t* high, std::uint8_t* low, Reg y) {
    const __m512i numbers = _mm512_cvtps_epi32(y);
    store_plane(high, _mm512_srai_epi32(numbers, 8));
    store_plane(low, numbers);
  }
  static Int high_bytes(Int a, Int b) {
    return ints(alternate(_mm512_srli_epi32(bits(a), 8), bits(b)));
  }
  static Int low_bytes(Int a, Int b) {
    return ints(alternate(bits(a), _mm512_slli_epi32(bits(b), 8)));
  }
  static Int join(Int high, Int middle, Int low) { return (high << 16) + (middle << 8) + low; }

 private:
  static void store_plane(std::uint8_t* p, __m512i a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a));
  }
  /// Bytes 0 and 2 of every lane from a, bytes 1 and 3 from b.
  static __m512i alternate(__m512i a, __m512i b) {
    constexpr int kSecondWhereFirst = 0xca;
    return _mm512_ternarylogic_epi32(_mm512_set1_epi32(0x00ff00ff), a, b, kSecondWhereFirst);
  }
};

}  // namespace

constinit const IsaUnit kAmxUnit{
    .name = "amx",
    .required = kAvx512 | kAvx512Vnni | kAvx512Bf16 | kAmx,
    .worthwhile = 0,
    .kernels = {
        .rows = {},
        .attention = {},
        .attention16 =
            attention16_kernel<PlaneSimd, TileProducts<PlaneSimd, Int8Instructions>>("amx"),
        .attention_bf16 = bf16_attention_kernel<PairSimd, Bf16Instructions>("amx"),
        .f32 = {},
        // 4 tiles of 32 rows share what is fetched of the weights. With 4096 features they take 1
        // MB of the L2 of the thread, which has 2 MB where there is AMX.
        .bf16 = bf16_kernel<Bf16Simd, AmxTiles<Bf16Instructions>>("amx", 128, /*is_fast=*/true),
        // 8 tiles, which take as much: with fewer, memory is the limit.
        .int8 = int8_kernel<VnniSimd, AmxTiles<Int8Instructions>>("amx", 256)}};

}  // namespace fovea::cpu
