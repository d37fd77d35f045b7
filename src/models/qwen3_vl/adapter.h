#pragma once

#include <memory>

#include "models/registry.h"

namespace fovea::qwen3_vl {

/// The family as the registry lists it: Qwen3-VL, its MoE variant, and Qwen3.5 with the same tower.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::qwen3_vl
