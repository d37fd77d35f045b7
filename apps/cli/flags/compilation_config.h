#pragma once

#include <string>

#include "console.h"
#include "fovea/options.h"

namespace fovea::cli {

/// Applies a --compilation-config text to `graphs`. Keys that say nothing about encoder graphs are
/// ignored with a warning on `console`; null stands for the default, as in vLLM.
/// @throws UsageError if the text is not a JSON object, or a known key has the wrong type or a
/// number out of range.
/// Source: docs/reference/encoder_graphs.md, "Compilation config".
void apply_compilation_config(const std::string& json_text, GraphOptions& graphs, Console& console);

/// Applies [64, 256], a list of token budgets for all paths, or {"global": [272, 544], "local":
/// [100]}, a list for each path named.
/// @param what is complained about. @throws UsageError as above.
void apply_json_budgets(const std::string& json_text, const std::string& what,
                        GraphOptions& graphs);

}  // namespace fovea::cli
