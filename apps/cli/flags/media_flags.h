#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "fovea/options.h"

namespace fovea::cli {

/// Flags about images, as the user gave them.
struct MediaFlags {
  std::string image_backend = "auto";
  std::string profile = "vllm";
  std::string background;       ///< "R,G,B"; empty: white
  std::int64_t min_pixels = 0;  ///< 0: the checkpoint's
  std::int64_t max_pixels = 0;  ///< 0: the checkpoint's
  bool jpeg_scaling = false;
  std::string damaged_frames = "skip";
  std::int64_t max_image_pixels = MediaLimits{}.max_image_pixels;
  std::int64_t max_item_bytes = static_cast<std::int64_t>(MediaLimits{}.max_item_bytes);
  std::int64_t max_patches_per_item = MediaLimits{}.max_patches_per_item;  ///< 0: the model's
  std::int64_t max_decode_bytes = 0;                                       ///< 0: the library's
  std::int64_t decode_deadline_ms = 0;                                     ///< 0: none
};

/// Adds the flags under a heading of their own.
void add_media_flags(CLI::App& verb, MediaFlags& flags);

/// Translates flags into options.
/// @throws UsageError if the background is no colour, or the profile uses none, and if all decoding
/// threads together have less memory than one item.
[[nodiscard]] MediaOptions media_options(const MediaFlags& flags);

}  // namespace fovea::cli
