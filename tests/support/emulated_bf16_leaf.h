#pragma once

#include "ops/cpu/bf16/task.h"

namespace fovea::test {

/// The bf16 leaf for AMX with the same loops, over EmulatedBf16 and plain vectors: its bits on a
/// machine without AMX.
[[nodiscard]] const cpu::Bf16Leaf& emulated_bf16_leaf();

}  // namespace fovea::test
