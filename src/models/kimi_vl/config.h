#pragma once

#include <cstdint>
#include <string_view>

#include "checkpoint/hf_config.h"
#include "models/common/grid/moonvit.h"

namespace fovea::kimi_vl {

using Config = common::MoonVitConfig;

/// Reads and validates vision_config of Kimi-VL and the width of the language model.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have. Source: docs/reference/kimi_vl.md, "Configuration".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

}  // namespace fovea::kimi_vl
