#pragma once

#include "core/plugin_note.h"
#include "media/video.h"

namespace fovea::media {

/// Raised by one whenever this file, media/video.h, media/image.h or MediaLimits changes: the
/// library and the plugin share these classes.
inline constexpr int kVideoPluginInterface = 1;
inline constexpr PluginBuild kVideoPluginBuild{.kind = {'v', 'i', 'd', 'e', 'o'},
                                               .interface_number = kVideoPluginInterface};

/// What the plugin `libfovea_video.so` offers. May throw fovea::Error across the boundary: both
/// sides are compiled by the same C++ ABI.
struct VideoPlugin {
  const char* libraries;  ///< what it decodes with, for `fovea env`
  VideoFrames (*decode)(std::span<const std::uint8_t> bytes, std::string_view name,
                        const FrameSampler& sampler, const MediaLimits& limits);
};

/// Name and type of the plugin's only symbol.
inline constexpr const char* kVideoPluginFile = "libfovea_video.so";
inline constexpr const char* kVideoPluginEntry = "fovea_video_plugin";
using VideoPluginEntry = const VideoPlugin* (*)();

}  // namespace fovea::media
