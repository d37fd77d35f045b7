#pragma once

#include <avif/avif.h>

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace fovea::media {

/// Channels of the pixels that avif_pixels() makes.
[[nodiscard]] inline std::size_t num_avif_channels(bool has_alpha) noexcept {
  return has_alpha ? 4 : 3;
}

/// Host memory that avif_pixels() takes beside the decoded image, its result included.
[[nodiscard]] std::size_t avif_pixel_bytes(const avifImage& image, bool has_alpha) noexcept;

/// Converts a decoded image to 8-bit RGB or RGBA without gaps, with the pixels of Pillow 13.
/// @param name for messages. @throws Error(kCorruptData) with libavif's reason, Error(kUnsupported)
/// for a colour space that it cannot convert.
/// Source: docs/reference/image_resize.md, "AVIF".
[[nodiscard]] std::vector<std::uint8_t> avif_pixels(const avifImage& image, bool has_alpha,
                                                    std::string_view name,
                                                    std::vector<std::uint8_t> memory);

/// @throws Error(kCorruptData) with libavif's words for a result other than AVIF_RESULT_OK,
/// std::bad_alloc if there was no memory.
void check_avif(avifResult result, std::string_view name);

}  // namespace fovea::media
