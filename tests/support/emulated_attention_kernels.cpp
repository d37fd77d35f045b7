#include "support/emulated_attention_kernels.h"

#include "ops/cpu/simd/portable.h"
#include "support/tile_emulator.h"
// The bodies are made of templates over types of this file.
#include "ops/cpu/attention/bf16/body.h"
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

struct PairSimd : cpu::FusedSimd {
  static Int pair_bf16(Reg first, Reg second) {
    std::byte halves[2][2 * kWidth];
    store_bf16(halves[0], first);
    store_bf16(halves[1], second);
    std::byte pairs[4 * kWidth];
    for (int i = 0; i < kWidth; ++i) {
      for (int half = 0; half < 2; ++half)
        std::memcpy(pairs + 4 * i + 2 * half, halves[half] + 2 * i, 2);
    }
    return load_int(pairs);
  }
};

struct Bf16Instructions : EmulatedBf16 {};

}  // namespace

const cpu::AttentionKernel& emulated_attention16_kernel() {
  static constexpr cpu::AttentionKernel kernel =
      cpu::attention16_kernel<KernelSimd, cpu::TileProducts<KernelSimd, KernelInstructions>>(
          "amx_emulated");
  return kernel;
}

const cpu::AttentionKernel& emulated_bf16_attention_kernel() {
  static constexpr cpu::AttentionKernel kernel =
      cpu::bf16_attention_kernel<PairSimd, Bf16Instructions>("amx_emulated");
  return kernel;
}

}  // namespace fovea::test
