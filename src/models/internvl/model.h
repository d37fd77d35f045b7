#pragma once

#include "models/registry.h"

namespace fovea::internvl {

/// InternVL 2 to 3.5 in the authors' format, and in that of transformers.
[[nodiscard]] const ModelFamily& chat_family() noexcept;
[[nodiscard]] const ModelFamily& native_family() noexcept;

}  // namespace fovea::internvl
