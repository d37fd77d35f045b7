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

}  // namespace fovea::cli
