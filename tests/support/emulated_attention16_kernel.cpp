#include "support/emulated_attention16_kernel.h"

#include "ops/cpu/simd/portable.h"
#include "support/tile_emulator.h"
// The body is made of templates over types of this file.
#include "ops/cpu/attention/int16/body.h"
#include "ops/cpu/attention/int16/tile_products.h"

namespace fovea::test {
namespace {

constexpr std::int32_t kFirstAndThird = 0x00ff00ff;

struct KernelSimd : cpu::FusedSimd {
  static void store_planes(std::uint8_t* high, std::uint8_t* low, Reg y) {
    std::int16_t numbers[kWidth];
    store_shorts(numbers, y);
    for (int i = 0; i < kWidth; ++i) {
      high[i] = static_cast<std::uint8_t>(numbers[i] >> 8);
      low[i] = static_cast<std::uint8_t>(numbers[i] & 0xff);
    }
  }
  static Int high_bytes(Int a, Int b) {
    return ((a >> 8) & kFirstAndThird) | (b & ~kFirstAndThird);
  }
  static Int low_bytes(Int a, Int b) { return (a & kFirstAndThird) | ((b << 8) & ~kFirstAndThird); }
  static Int join(Int high, Int middle, Int low) { return (high << 16) + (middle << 8) + low; }
};

struct KernelInstructions : EmulatedInt8 {};

}  // namespace

const cpu::AttentionKernel& emulated_attention16_kernel() {
  static constexpr cpu::AttentionKernel kernel =
      cpu::attention16_kernel<KernelSimd, cpu::TileProducts<KernelSimd, KernelInstructions>>(
          "amx_emulated");
  return kernel;
}

}  // namespace fovea::test
