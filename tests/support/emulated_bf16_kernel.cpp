#include "support/emulated_bf16_kernel.h"

#include "ops/cpu/simd/portable.h"
#include "support/tile_emulator.h"
// The bodies are templates over types of this file.
#include "ops/cpu/gemm/amx_tiles.h"
#include "ops/cpu/gemm/bf16.h"

namespace fovea::test {
namespace {

// Types of this file, as the bodies need them.
struct KernelSimd : cpu::FusedSimd {};
struct KernelInstructions : EmulatedBf16 {};

}  // namespace

const cpu::GemmKernel& emulated_bf16_kernel() {
  static constexpr cpu::GemmKernel kernel =
      cpu::bf16_kernel<KernelSimd, cpu::AmxTiles<KernelInstructions>>("amx_emulated", 128, true);
  return kernel;
}

}  // namespace fovea::test
