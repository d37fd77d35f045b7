// Videos are decoded by a plugin, because its library depends on a hundred others.
#include "media/video.h"

#include "core/check.h"
#include "core/interrupt.h"
#include "core/plugin/plugin.h"
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
  const PluginFile file = find_plugin(kVideoPluginFile);
  if (file.path.empty()) return {.path = {}, .reason = file.reason};
  const PluginEntry entry = load_plugin_entry(file.path, kVideoPluginEntry, kVideoPluginBuild);
  if (entry.function == nullptr) return {.path = file.path, .reason = entry.reason};
  return {.plugin = reinterpret_cast<VideoPluginEntry>(entry.function)(),
          .path = file.path,
          .reason = {}};
}

/// Looked for once: a decoder process cannot open files later.
const Found& video_plugin() {
  static const Found found = find_video_plugin();
  return found;
}

}  // namespace

VideoInfo decode_video(const EncodedVideo& video, const FrameSampler& sampler,
                       const MediaLimits& limits, const FrameSink& sink) {
  const Found& found = video_plugin();
  FOVEA_CHECK(found.plugin != nullptr, kUnsupported, video.name,
              ": video containers need the video plugin: ", found.reason,
              "; or give a directory of frame images");
  return found.plugin->decode(video, sampler, limits, sink, current_interrupt());
}

std::string video_status() {
  const Found& found = video_plugin();
  if (found.plugin == nullptr) return "not used: " + found.reason;
  return cat(found.plugin->libraries, " (", found.path, ")");
}

}  // namespace fovea::media
