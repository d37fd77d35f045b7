#pragma once

#include "ops/cpu/attention/task.h"

namespace fovea::test {

/// The kernel of attention in integers for AMX over an emulator of the tiles, with portable
/// vectors.
[[nodiscard]] const cpu::AttentionKernel& emulated_attention16_kernel();

}  // namespace fovea::test
