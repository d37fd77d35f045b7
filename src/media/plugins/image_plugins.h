#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "media/decode_image.h"
#include "media/plugins/image_plugin_abi.h"

// Formats whose libraries are optional: each is decoded by a plugin, which is built where the
// library is installed and loaded when the first file of the format comes. A machine without the
// library, or without one of those that it needs, lacks one format and nothing else.

namespace fovea::media {

/// The plugin of a format, loaded for good.
/// @param name of the image, for the message.
/// @throws Error(kUnsupported) if there is none, with the reason and the package that it is built
/// with; Error(kInternal) for a format that needs no plugin.
[[nodiscard]] const ImagePlugin& image_plugin(ImageFormat format, std::string_view name);

/// Loads the plugins of all formats that have one: a decoder process cannot open files later.
void load_image_plugins();

/// A format and the path of its plugin with the library, or why it cannot be used.
struct ImagePluginStatus {
  std::string_view format;
  std::string text;
};

/// For `fovea env`.
[[nodiscard]] std::vector<ImagePluginStatus> image_plugin_status();

}  // namespace fovea::media
