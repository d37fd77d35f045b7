#pragma once

#include "fovea/tower/core/plugin_note.h"

namespace fovea {

/// Tells builds of the library and the plugin apart whose classes differ: a number made from the
/// text of the headers that both compile (src/device/CMakeLists.txt). In a header of its own
/// because the files that include it are compiled again when one of those changes.
inline constexpr PluginBuild kCudaPluginBuild{.kind = {'c', 'u', 'd', 'a'},
                                              .interface_number = FOVEA_CUDA_INTERFACE};

}  // namespace fovea
