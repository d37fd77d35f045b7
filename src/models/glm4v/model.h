#pragma once

#include "models/registry.h"

namespace fovea::glm4v {

/// GLM-4.1V, GLM-4.5V and GLM-4.6V.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::glm4v
