#pragma once

#include "models/registry.h"

namespace fovea::qwen3_vl {

/// Qwen3-VL, its mixture-of-experts variant, and Qwen3.5 with the same tower.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::qwen3_vl
