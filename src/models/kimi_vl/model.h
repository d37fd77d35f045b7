#pragma once

#include "models/registry.h"

namespace fovea::kimi_vl {

/// Kimi-VL.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::kimi_vl
