#pragma once

#include "core/interrupt.h"
#include "fovea/tower/core/plugin_note.h"
#include "media/video.h"

namespace fovea::media {

/// Raised by one whenever this file, media/video.h, media/image.h, Interrupt or MediaLimits
/// changes: the library and the plugin share these classes.
inline constexpr int kVideoPluginInterface = 5;
inline constexpr PluginBuild kVideoPluginBuild{.kind = {'v', 'i', 'd', 'e', 'o'},
                                               .interface_number = kVideoPluginInterface};

/// The functions that `libfovea_video.so` offers. They may throw fovea::Error across the boundary:
/// both sides are compiled by the same C++ ABI.
struct VideoPlugin {
  const char* libraries;  ///< what it decodes with, for `fovea env`
  /// @param interrupt of the calling thread, which the plugin cannot see; may be null.
  VideoInfo (*decode)(const EncodedVideo& video, const FrameSampler& sampler,
                      const MediaLimits& limits, const FrameSink& sink, const Interrupt* interrupt);
};

/// Name and type of the plugin's only symbol.
inline constexpr const char* kVideoPluginFile = "libfovea_video.so";
inline constexpr const char* kVideoPluginEntry = "fovea_video_plugin";
using VideoPluginEntry = const VideoPlugin* (*)();

}  // namespace fovea::media
