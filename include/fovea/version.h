#pragma once

#include "fovea/export.h"

namespace fovea {

inline constexpr int kVersionMajor = 0;
inline constexpr int kVersionMinor = 1;
inline constexpr int kVersionPatch = 0;

/// Returns "major.minor.patch" of the library that is linked (not of this header).
[[nodiscard]] FOVEA_API const char* version() noexcept;

}  // namespace fovea
