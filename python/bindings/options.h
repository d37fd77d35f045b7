#pragma once

#include <nanobind/nanobind.h>

#include "fovea/options.h"

namespace fovea::python {

/// Keyword arguments as options, under the names of fovea/option_table.h.
/// @throws TypeError for an unknown name or a value of the wrong type, ValueError for an unknown
/// choice.
[[nodiscard]] EngineOptions engine_options(const nanobind::dict& options);

/// All options by their names: an enum as the name of its value, milliseconds as a number.
[[nodiscard]] nanobind::dict option_dict(const EngineOptions& options);

}  // namespace fovea::python
