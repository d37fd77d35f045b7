#pragma once

#include "ops/cpu/gemm/task.h"

namespace fovea::test {

/// The bf16 kernel for AMX with the same loops, over EmulatedBf16 and plain vectors: its bits on a
/// machine without AMX.
[[nodiscard]] const cpu::GemmKernel& emulated_bf16_kernel();

/// That for BFMMLA with the same loops, over an emulator of the instruction.
[[nodiscard]] const cpu::GemmKernel& emulated_matrix_kernel();

}  // namespace fovea::test
