#pragma once

#include <string>

#include "fovea/options.h"

namespace fovea::cli {

/// Asks the model whether it can work with the options, before anything of size is loaded. Builds a
/// planner: it reads the JSON files in the directory `model`. What is wrong with the model itself
/// is said when it is loaded, not here.
/// @throws UsageError naming the flag without which the options would do.
void check_limits(const std::string& model, EngineOptions options);

}  // namespace fovea::cli
