#pragma once

#include <optional>

#include "core/file.h"
#include "fovea/tower/core/plugin_note.h"

namespace fovea {

/// Reads the note of a shared object; absent if it has none or is no ELF file of 64 bits. Notes
/// behind the first hundred are not looked at.
[[nodiscard]] std::optional<PluginBuild> read_plugin_build(const InputFile& file);

}  // namespace fovea
