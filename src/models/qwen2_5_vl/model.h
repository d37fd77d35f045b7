#pragma once

#include "models/registry.h"

namespace fovea::qwen2_5_vl {

/// Qwen2.5-VL.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::qwen2_5_vl
