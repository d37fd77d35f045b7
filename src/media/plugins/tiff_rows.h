#pragma once

#include <cstddef>
#include <cstdint>

#include "media/plugins/tiff_layout.h"

namespace fovea::media {

/// Converts pixels of a row to RGBA as Pillow does; without alpha they are opaque.
/// @param row of interleaved samples, in the order of the machine; not of kByLibrary.
/// @param rgba 4 * num_pixels bytes, must not overlap.
/// Source: docs/reference/image_resize.md, "TIFF".
void tiff_row_to_rgba(const TiffLayout& layout, const std::uint8_t* row, std::size_t num_pixels,
                      std::uint8_t* rgba) noexcept;

}  // namespace fovea::media
