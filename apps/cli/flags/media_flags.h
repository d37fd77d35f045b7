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
  std::int64_t max_image_pixels = MediaLimits{}.max_image_pixels;
};

/// Adds the flags under a heading of their own.
void add_media_flags(CLI::App& verb, MediaFlags& flags);

/// Translates flags into options.
/// @throws UsageError if the background is no colour, or the profile uses none.
[[nodiscard]] MediaOptions media_options(const MediaFlags& flags);

}  // namespace fovea::cli
