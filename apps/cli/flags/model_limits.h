#pragma once

#include "flags/flags.h"
#include "fovea/options.h"

namespace fovea::cli {

/// Checks that the model of `flags` can work with `options`, which were made of them, before
/// weights are loaded. Plans with the model, which reads the JSON files in its directory. Errors of
/// the model itself are reported when it is loaded, not here.
/// @throws UsageError naming the flag without which the options would do.
void check_limits(const EngineFlags& flags, EngineOptions options);

}  // namespace fovea::cli
