#pragma once

#include "ops/cpu/attention16/task.h"

namespace fovea::test {

/// The leaf of attention for AMX over an emulator of the tiles, with portable vectors.
[[nodiscard]] const cpu::Attention16Leaf& emulated_attention16_leaf();

}  // namespace fovea::test
