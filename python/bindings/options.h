#pragma once

#include <nanobind/nanobind.h>

#include "fovea/options.h"

namespace fovea::python {

/// Keyword arguments as options. Names are those of the members of EngineOptions, MediaOptions,
/// MediaLimits and GraphOptions; `media_profile` and `rgba_background_color` as flags of the
/// program.
/// @throws TypeError for an unknown name or a value of the wrong type, ValueError for an unknown
/// choice.
[[nodiscard]] EngineOptions engine_options(const nanobind::dict& options);

}  // namespace fovea::python
