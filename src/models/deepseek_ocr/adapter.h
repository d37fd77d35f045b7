#pragma once

#include "models/registry.h"

namespace fovea::deepseek_ocr {

/// The family as the registry lists it.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::deepseek_ocr
