#pragma once

#include <string_view>
#include <vector>

#include "core/interrupt.h"
#include "fovea/tower/core/plugin_note.h"
#include "media/formats/decoders.h"

namespace fovea::media {

/// Raised by one whenever this file, media/formats/decoders.h, media/image.h, Interrupt or
/// MediaOptions changes: the library and its plugins share these classes.
inline constexpr int kImagePluginInterface = 3;

/// The build of the plugin of one format. @param kind in lower case, at most 7 letters.
[[nodiscard]] constexpr PluginBuild image_plugin_build(std::string_view kind) {
  PluginBuild build{.interface_number = kImagePluginInterface};
  for (std::size_t i = 0; i < kind.size(); ++i) build.kind[i] = kind[i];
  return build;
}

/// The functions that the plugin of an image format offers, with the contracts of decoders.h. They
/// may throw fovea::Error across the boundary: both sides are compiled by the same C++ ABI.
struct ImagePlugin {
  const char* library;  ///< with its version, for `fovea env`
  ImageHeader (*read_header)(const EncodedImage& source, const MediaLimits& limits);
  /// @param interrupt of the calling thread, which the plugin cannot see; may be null.
  Image (*decode)(const EncodedImage& source, const ImageHeader& header,
                  const MediaOptions& options, std::vector<std::uint8_t> memory,
                  const Interrupt* interrupt);
};

/// Name and type of a plugin's only symbol.
inline constexpr const char* kImagePluginEntry = "fovea_image_plugin";
using ImagePluginEntry = const ImagePlugin* (*)();

}  // namespace fovea::media
