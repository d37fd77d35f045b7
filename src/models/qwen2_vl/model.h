#pragma once

#include "models/registry.h"

namespace fovea::qwen2_vl {

/// Qwen2-VL.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::qwen2_vl
