#pragma once

#include <string>

namespace fovea {

/// Looks for a plugin file in lib/fovea of the folders above the running program and above this
/// library: an installed tree (bin/../lib/fovea) or a build tree.
/// @param file for example "libfovea_video.so".
/// @return its path, or an empty string.
[[nodiscard]] std::string find_plugin(const std::string& file);

/// A loaded shared object's entry, or the reason why there is none.
struct PluginEntry {
  void* function = nullptr;
  std::string reason;  ///< empty if `function` is set
};

/// Loads `path` for good (it is never unloaded) and looks up `symbol`.
[[nodiscard]] PluginEntry load_plugin_entry(const std::string& path, const std::string& symbol);

}  // namespace fovea
