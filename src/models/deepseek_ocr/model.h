#pragma once

#include "models/registry.h"

namespace fovea::deepseek_ocr {

/// DeepSeek-OCR: two towers, a global view and local tiles.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::deepseek_ocr
