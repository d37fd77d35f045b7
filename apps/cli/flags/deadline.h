#pragma once

#include <CLI/CLI.hpp>
#include <optional>

#include "fovea/call_bounds.h"

namespace fovea::cli {

/// Adds --deadline SECONDS to a verb that loads and runs a model.
void add_deadline(CLI::App& verb, std::optional<double>& seconds);

/// Bounds of all calls of a verb that begins now; none without the flag.
[[nodiscard]] CallBounds bounds_from_now(const std::optional<double>& seconds);

}  // namespace fovea::cli
