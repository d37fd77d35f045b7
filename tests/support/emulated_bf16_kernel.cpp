#include "support/emulated_bf16_kernel.h"

#include "ops/cpu/simd/portable.h"
#include "support/round_to_odd.h"
#include "support/tile_emulator.h"
// The bodies are templates over types of this file.
#include "ops/cpu/gemm/amx_tiles.h"
#include "ops/cpu/gemm/bf16.h"
#include "ops/cpu/gemm/matrix_tiles.h"

namespace fovea::test {
namespace {

// Types of this file, as the bodies need them.
struct KernelSimd : cpu::FusedSimd {};
struct KernelInstructions : EmulatedBf16 {};

struct EmulatedMatrices {
  using Vector = KernelSimd;
  using Sum = float;
  using Sums = KernelSimd::Reg;

  static Sums zero() { return Sums{}; }
  static Sums multiply(Sums sums, KernelSimd::Int x, KernelSimd::Int w) {
    const Sums even[2] = {KernelSimd::lower_bf16(x), KernelSimd::lower_bf16(w)};
    const Sums odd[2] = {KernelSimd::upper_bf16(x), KernelSimd::upper_bf16(w)};
    for (int row = 0; row < 2; ++row) {
      for (int column = 0; column < 2; ++column) {
        float sum = sums[2 * row + column];
        for (int pair = 0; pair < 2; ++pair) {
          const int left = 2 * row + pair;
          const int right = 2 * column + pair;
          sum = add_to_odd(sum, add_to_odd(multiply_bf16(even[0][left], even[1][right]),
                                           multiply_bf16(odd[0][left], odd[1][right])));
        }
        sums[2 * row + column] = sum;
      }
    }
    return sums;
  }
  template <int kRow>
  static void store_row(float* p, Sums sums) {
    for (int column = 0; column < 2; ++column) p[column] = sums[2 * kRow + column];
  }
};

}  // namespace

const cpu::GemmKernel& emulated_bf16_kernel() {
  static constexpr cpu::GemmKernel kernel =
      cpu::bf16_kernel<KernelSimd, cpu::AmxTiles<KernelInstructions>>("amx_emulated", 128, true);
  return kernel;
}

const cpu::GemmKernel& emulated_matrix_kernel() {
  static constexpr cpu::GemmKernel kernel =
      cpu::bf16_kernel<KernelSimd, cpu::MatrixTiles<EmulatedMatrices>>("neon_bf16_emulated", 60,
                                                                       true);
  return kernel;
}

}  // namespace fovea::test
