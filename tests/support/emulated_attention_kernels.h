#pragma once

#include "ops/cpu/attention/task.h"

namespace fovea::test {

// The kernels of attention for AMX over an emulator of the tiles, with portable vectors.

[[nodiscard]] const cpu::AttentionKernel& emulated_attention16_kernel();
[[nodiscard]] const cpu::AttentionKernel& emulated_bf16_attention_kernel();

}  // namespace fovea::test
