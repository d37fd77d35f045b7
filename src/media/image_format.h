#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "media/decode_image.h"

namespace fovea::media {

/// Tells the format from the first bytes of a file, never from its name.
/// @param name of the image, for messages.
/// @throws Error(kCorruptData) if there are no bytes, Error(kUnsupported) for any other format; the
/// message names it where it is a well-known one.
[[nodiscard]] ImageFormat detect_image_format(std::span<const std::uint8_t> bytes,
                                              std::string_view name);

}  // namespace fovea::media
