#pragma once

#include <string>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "models/registry.h"

namespace fovea {

/// Checks the options that not every family has: media.min_pixels, media.max_pixels,
/// video_pruning_rate, and quantization, which the tower of a library has not.
/// @throws Error(kUnsupported) naming the option and the family if the model cannot honour it, and
/// as check_video_pruning() and family_of().
void check_family_options(const checkpoint::HfConfig& files, const EngineOptions& options);

/// The files of a model's directory, and the library of options.tower. What begins with options
/// begins here, so that their values are checked before anything is made of them.
/// @throws as check_values() and read_hf_config.
[[nodiscard]] checkpoint::HfConfig read_model_files(const std::string& directory,
                                                    const EngineOptions& options);

/// The output of the tower of an engine.
/// @throws Error(kInvalidArgument) for normalize_vectors without vectors.
[[nodiscard]] TowerOutput tower_output(const EngineOptions& options);

/// The options with a limit on patches that holds wherever items are not cut into units: there
/// max_patches_at_once is that of whole videos, too.
[[nodiscard]] EngineOptions with_patch_limit(EngineOptions options);

}  // namespace fovea
