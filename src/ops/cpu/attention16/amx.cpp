// Attention in 16-bit integers for AMX: 4096 products and their sums in four instructions. All else
// is done in vectors of 512 bits.
#include "ops/cpu/amx_instructions.h"
#include "ops/cpu/attention16/int16_avx512.h"
// The body is made of templates over types of this file.
#include "ops/cpu/attention16/body.h"
#include "ops/cpu/attention16/tile_products.h"

namespace fovea::cpu {

namespace {

struct Int8Instructions : AmxInstructions {
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

struct Int16Planes : Int16Avx512 {
  static void store_planes(std::uint8_t* high, std::uint8_t* low, Reg y) {
    const __m512i numbers = _mm512_cvtps_epi32(y);
    store_bytes(high, _mm512_srai_epi32(numbers, 8));
    store_bytes(low, numbers);
  }
  static Int high_bytes(Int a, Int b) {
    return reinterpret_cast<Int>(alternate(_mm512_srli_epi32(bits(a), 8), bits(b)));
  }
  static Int low_bytes(Int a, Int b) {
    return reinterpret_cast<Int>(alternate(bits(a), _mm512_slli_epi32(bits(b), 8)));
  }
  static Int join(Int high, Int middle, Int low) { return (high << 16) + (middle << 8) + low; }

 private:
  static void store_bytes(std::uint8_t* p, __m512i a) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a));
  }
  /// Bytes 0 and 2 of every lane from a, bytes 1 and 3 from b.
  static __m512i alternate(__m512i a, __m512i b) {
    constexpr int kSecondWhereFirst = 0xca;
    return _mm512_ternarylogic_epi32(_mm512_set1_epi32(0x00ff00ff), a, b, kSecondWhereFirst);
  }
};

}  // namespace

constinit const Attention16Leaf kAttention16Amx{
    &attention16_task<Int16Planes, TileProducts<Int16Planes, Int8Instructions>>, "amx"};

}  // namespace fovea::cpu
