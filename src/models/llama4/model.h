#pragma once

#include "models/registry.h"

namespace fovea::llama4 {

/// Llama 4.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::llama4
