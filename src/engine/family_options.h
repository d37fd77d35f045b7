#pragma once

#include <string_view>

#include "fovea/options.h"

namespace fovea {

/// Checks the options that not every family has: media.min_pixels, media.max_pixels and
/// video_pruning_rate.
/// @throws Error(kUnsupported) naming the option and the family if the architecture cannot honour
/// it, and as check_video_pruning().
void check_family_options(std::string_view architecture, const EngineOptions& options);

/// The options with a limit on patches that holds wherever items are not cut into units: there
/// max_patches_at_once is that of whole videos, too.
[[nodiscard]] EngineOptions with_patch_limit(EngineOptions options);

}  // namespace fovea
