// Finds and loads the plugins of image formats.
#include "media/plugins/image_plugins.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/check.h"
#include "core/plugin/plugin.h"

namespace fovea::media {
namespace {

struct PluginFormat {
  ImageFormat format;
  std::string_view name;     ///< for messages
  std::string_view kind;     ///< of the plugin, and part of its file's name
  std::string_view package;  ///< of Debian, that it is built with
};

constexpr std::array kPluginFormats{
    PluginFormat{ImageFormat::kGif, "GIF", "gif", "libgif-dev"},
    PluginFormat{ImageFormat::kTiff, "TIFF", "tiff", "libtiff-dev"},
    PluginFormat{ImageFormat::kAvif, "AVIF", "avif", "libavif-dev"},
    PluginFormat{ImageFormat::kHeic, "HEIC", "heic", "libheif-dev"},
};

/// A plugin, or the reason why there is none.
struct FoundImagePlugin {
  const ImagePlugin* plugin = nullptr;
  std::string path;
  std::string reason;
};

FoundImagePlugin find_image_plugin(const PluginFormat& format) {
  const PluginFile file = find_plugin(cat("libfovea_", format.kind, ".so"));
  if (file.path.empty()) return {.path = {}, .reason = file.reason};
  const PluginEntry entry =
      load_plugin_entry(file.path, kImagePluginEntry, image_plugin_build(format.kind));
  if (entry.function == nullptr) return {.path = file.path, .reason = entry.reason};
  return {.plugin = reinterpret_cast<ImagePluginEntry>(entry.function)(),
          .path = file.path,
          .reason = {}};
}

/// Each plugin is looked for once.
template <std::size_t kIndex>
const FoundImagePlugin& found_plugin() {
  static const FoundImagePlugin found = find_image_plugin(kPluginFormats[kIndex]);
  return found;
}

using Finder = const FoundImagePlugin& (*)();

template <std::size_t... kIndices>
constexpr std::array<Finder, sizeof...(kIndices)> make_finders(std::index_sequence<kIndices...>) {
  return {&found_plugin<kIndices>...};
}

constexpr auto kFinders = make_finders(std::make_index_sequence<kPluginFormats.size()>());

}  // namespace

const ImagePlugin& image_plugin(ImageFormat format, std::string_view name) {
  const auto* const known = std::ranges::find(kPluginFormats, format, &PluginFormat::format);
  FOVEA_CHECK(known != kPluginFormats.end(), kInternal, "image format without a decoder");
  const FoundImagePlugin& found =
      kFinders[static_cast<std::size_t>(known - kPluginFormats.begin())]();
  FOVEA_CHECK(found.plugin != nullptr, kUnsupported, name, ": ", known->name,
              " needs a plugin, which is built where ", known->package,
              " is installed: ", found.reason);
  return *found.plugin;
}

void load_image_plugins() {
  for (const Finder find : kFinders) (void)find();
}

std::vector<ImagePluginStatus> image_plugin_status() {
  std::vector<ImagePluginStatus> status;
  for (std::size_t i = 0; i < kPluginFormats.size(); ++i) {
    const FoundImagePlugin& found = kFinders[i]();
    status.push_back({kPluginFormats[i].kind,
                      found.plugin == nullptr ? cat("not used: ", found.reason)
                                              : cat(found.plugin->library, " (", found.path, ")")});
  }
  return status;
}

}  // namespace fovea::media
