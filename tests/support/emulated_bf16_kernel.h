#pragma once

#include "ops/cpu/gemm/task.h"

namespace fovea::test {

/// The bf16 kernel for AMX with the same loops, over EmulatedBf16 and plain vectors: its bits on a
/// machine without AMX.
[[nodiscard]] const cpu::GemmKernel& emulated_bf16_kernel();

}  // namespace fovea::test
