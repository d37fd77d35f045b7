// Videos are decoded by a plugin, because its library depends on a hundred others.
#include "media/video.h"

#include <cstring>

#include "core/check.h"
#include "core/plugin.h"
#include "fovea/version.h"
#include "media/video_abi.h"

namespace fovea::media {

namespace {

/// The plugin, or the reason why there is none.
struct Found {
  const VideoPlugin* plugin = nullptr;
  std::string path;
  std::string reason;
};

Found find_video_plugin() {
  Found found;
  found.path = find_plugin(kVideoPluginFile);
  if (found.path.empty()) {
    found.reason = cat("lib/fovea/", kVideoPluginFile, " is not in a folder above the program");
    return found;
  }
  const PluginEntry entry = load_plugin_entry(found.path, kVideoPluginEntry);
  found.reason = entry.reason;
  if (entry.function == nullptr) return found;
  const VideoPlugin* const plugin = reinterpret_cast<VideoPluginEntry>(entry.function)();
  if (plugin->interface_version != kVideoPluginInterface ||
      std::strcmp(plugin->version, version()) != 0) {
    found.reason =
        cat(found.path, " was built for version ", plugin->version, ", this is ", version());
    return found;
  }
  found.plugin = plugin;
  return found;
}

}  // namespace

VideoFrames decode_video(std::span<const std::uint8_t> bytes, std::string_view name,
                         const FrameSampler& sampler, const MediaLimits& limits) {
  const Found found = find_video_plugin();
  FOVEA_CHECK(found.plugin != nullptr, kUnsupported, name,
              ": video containers need the video plugin: ", found.reason,
              "; or give a directory of frame images");
  return found.plugin->decode(bytes, name, sampler, limits);
}

std::string video_status() {
  const Found found = find_video_plugin();
  if (found.plugin == nullptr) return "not used: " + found.reason;
  return cat(found.plugin->libraries, " (", found.path, ")");
}

}  // namespace fovea::media
