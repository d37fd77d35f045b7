#pragma once

#include <string>

#include "models/registry.h"

namespace fovea {

/// The tower of a shared library as a family, whose name is that of the library's tower.
/// @param path absolute or relative to the working folder.
/// @throws Error(kNotFound) if there is no such file, Error(kUnsupported) for a library that
/// plugin_refusal() objects to, a tower for another Fovea, and a file that is no tower.
[[nodiscard]] ModelFamily load_tower_library(const std::string& path);

}  // namespace fovea
