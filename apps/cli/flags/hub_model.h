#pragma once

#include <string>

#include "console.h"
#include "flags/flags.h"
#include "fovea/hub.h"

namespace fovea::cli {

/// Downloads a model as pull_model() does; the status line says how far it is.
/// @returns its directory. @throws as pull_model().
[[nodiscard]] std::string pull_with_status(const std::string& name, PullOptions options,
                                           Console& console);

/// Replaces the name of a model on the hub, such as "Qwen/Qwen3-VL-8B-Instruct", by the directory
/// of its snapshot in the hub cache, after a download with --download. Anything else, and a name
/// that is also a path of this machine, stays as it is. Where the hub cannot be asked, what the
/// cache has is taken with a warning.
/// @throws UsageError for a name that is no path and not in the cache, and for --download and
/// --revision beside a path; and as pull_with_status().
void find_model(EngineFlags& flags, Console& console);

}  // namespace fovea::cli
