#pragma once

#include "models/registry.h"

namespace fovea::step3_vl {

/// Step3-VL.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::step3_vl
