#pragma once

#include "flags.h"
#include "fovea/options.h"

namespace fovea::cli {

/// Asks the model of `flags` whether it can work with `options`, which come from them, before
/// anything of size is loaded. Builds a planner: it reads the JSON files in the directory of the
/// model. What is wrong with the model itself is said when it is loaded, not here.
/// @throws UsageError naming the setting without which the options would do, as the user typed it:
/// the flag, or the key of --compilation-config.
void check_limits(const EngineFlags& flags, EngineOptions options);

}  // namespace fovea::cli
