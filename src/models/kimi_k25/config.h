#pragma once

#include "checkpoint/hf_config.h"
#include "models/common/grid/moonvit.h"

namespace fovea::kimi_k25 {

using Config = common::MoonVitConfig;

/// Reads and validates vision_config: the keys of published checkpoints (vt_hidden_size, ...), or
/// those that transformers writes; and the frames of a chunk, which the processor files have.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have. Source: docs/reference/kimi_vl.md, "Kimi-K2.5".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

}  // namespace fovea::kimi_k25
