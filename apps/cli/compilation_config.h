#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "console.h"
#include "fovea/options.h"

namespace fovea::cli {

/// Most tokens of a budget: rows are counted in 32 bits on the device.
inline constexpr std::int64_t kMaxTokenBudget = std::numeric_limits<std::int32_t>::max();

/// Applies a --compilation-config text to `graphs`. Keys that say nothing about encoder graphs are
/// ignored with a warning on `console`; null stands for the default, as in vLLM.
/// @throws UsageError if the text is not a JSON object, or a known key has the wrong type or a
/// number out of range.
/// Source: docs/reference/encoder_graphs.md, "Compilation config".
void apply_compilation_config(const std::string& json_text, GraphOptions& graphs, Console& console);

}  // namespace fovea::cli
