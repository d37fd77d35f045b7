#pragma once

#include <optional>
#include <string>

#include "core/file.h"
#include "fovea/tower/core/plugin_note.h"

namespace fovea {

/// Where a plugin is, or the reason why there is none.
struct PluginFile {
  std::string path;    ///< absolute
  std::string reason;  ///< empty if `path` is set
};

/// Looks for a plugin in
///   $FOVEA_PLUGIN_DIR     if that is set: an absolute path, and then nowhere else. Programs that
///                         run with more rights than their caller do not look at it;
///   <folder>/fovea        of the shared library that holds this code;
///   <folder>/../lib/fovea of the running program (with the name of lib that it is installed to).
/// Both folders are those that the system knows, absolute; the working folder has no part in it.
/// @param file for example "libfovea_video.so".
[[nodiscard]] PluginFile find_plugin(const std::string& file);

/// Reads the note of a shared object; absent if it has none or is no ELF file of 64 bits. Notes
/// behind the first hundred are not looked at.
[[nodiscard]] std::optional<PluginBuild> read_plugin_build(const InputFile& file);

/// Why no code of a plugin, or of a program that lies beside them, may run; empty if it may. It
/// must be built for `build`, and its file and folder must belong to root, to the user who runs
/// this process or to the owner of the program or the library, and no other user may write to them.
/// @param path absolute.
[[nodiscard]] std::string plugin_refusal(const std::string& path, const PluginBuild& build);

/// A loaded shared object's entry, or the reason why there is none.
struct PluginEntry {
  void* function = nullptr;
  std::string reason;  ///< empty if `function` is set
};

/// Loads a plugin for good (it is never unloaded) and looks up `symbol`, unless plugin_refusal()
/// has a reason against it.
[[nodiscard]] PluginEntry load_plugin_entry(const std::string& path, const std::string& symbol,
                                            const PluginBuild& build);

}  // namespace fovea
