#pragma once

#include <string>

#include "fovea/options.h"

namespace fovea::cli {

/// Reads the token budgets of graphs: "64,256" or [64, 256] for all paths, or {"global": [272,
/// 544], "local": [100]}, a list for each path named. What `graphs` held of them is forgotten.
/// @param what is complained about.
/// @throws UsageError for text of another form, and for numbers that are no token budgets.
void read_token_budgets(const std::string& text, const std::string& what, GraphOptions& graphs);

}  // namespace fovea::cli
