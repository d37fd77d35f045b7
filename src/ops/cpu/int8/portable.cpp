// The int8 linear layer for processors without a leaf of their own: the bits of the other leaves,
// with whatever instructions there are.
#include "ops/cpu/vector/simd_portable.h"
// The body is made of templates over a type of this file.
#include "ops/cpu/int8/body.h"

namespace fovea::cpu {

namespace {

struct Int8Simd : SameBitsSimd {
  using Int = Bits;
  static constexpr int kTileRows = 4;

  static void prefetch(const std::byte* p) { __builtin_prefetch(p); }
  static Int zero() { return Int{}; }
  static Int load_group(const std::byte* p) { return load_bits(p); }
  static Int broadcast_group(const std::uint8_t* p) { return broadcast_bits(p); }
  static Int dot(Int sum, Int x, Int w) {
    for (int shift = 0; shift < 32; shift += 8)
      sum += ((x >> shift) & 0xff) * ((w << (24 - shift)) >> 24);
    return sum;
  }
  static Int dot_one(Int sum, std::int32_t excess, Int w, int i) {
    return sum + excess * ((w << (24 - 8 * i)) >> 24);
  }
  static int count_outside(Reg a, Reg low, Reg high) {
    int count = 0;
    for (int i = 0; i < kWidth; ++i) count += a[i] < low[i] || a[i] > high[i] ? 1 : 0;
    return count;
  }
  static Int load_int(const std::int32_t* p) { return load_bits(p); }
  static void store_int(std::int32_t* p, Int a) { std::memcpy(p, &a, sizeof(a)); }
  static Reg to_float(Int a) { return __builtin_convertvector(a, Reg); }
  static Int add_bytes(Int sum, const std::uint8_t* p) {
    const Int bytes = load_bits(p);
    for (int shift = 0; shift < 32; shift += 8) sum += (bytes >> shift) & 0xff;
    return sum;
  }
  static float smallest(Reg a) {
    float result = a[0];
    for (int i = 1; i < kWidth; ++i) result = a[i] < result ? a[i] : result;
    return result;
  }
  static float largest(Reg a) {
    float result = a[0];
    for (int i = 1; i < kWidth; ++i) result = a[i] > result ? a[i] : result;
    return result;
  }
  static void store_bytes(std::uint8_t* p, const Reg (&a)[4]) {
    for (const Reg& part : a) {
      const Reg y = min(max(round(part), Reg{}), broadcast(255.0f));
      for (int i = 0; i < kWidth; ++i) *p++ = static_cast<std::uint8_t>(y[i]);
    }
  }
};

}  // namespace

constinit const Int8Leaf kInt8Portable{&quantize_rows<Int8Simd>,
                                       &multiply_int8<Int8Simd, VectorTiles<Int8Simd>>,
                                       Int8Simd::kTileRows, kInt8TaskRows, "portable"};

}  // namespace fovea::cpu
