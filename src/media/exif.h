#pragma once

#include <cstdint>
#include <span>

#include "media/image.h"

namespace fovea::media {

/// The operation that makes a stored image upright: values of EXIF tag 0x0112.
enum class Orientation : std::uint8_t {
  kUpright = 1,
  kMirrorHorizontal = 2,  ///< left and right swapped
  kRotate180 = 3,
  kMirrorVertical = 4,  ///< top and bottom swapped
  kTranspose = 5,       ///< x and y swapped
  kRotate90 = 6,        ///< turn clockwise
  kTransverse = 7,      ///< mirrored along the other diagonal
  kRotate270 = 8,       ///< turn counter-clockwise
};

/// Reads the orientation from an EXIF block (a TIFF header and its first directory), with or
/// without the "Exif\0\0" in front. Anything absent, damaged or out of range is upright: an image
/// does not fail because of its metadata.
[[nodiscard]] Orientation exif_orientation(std::span<const std::uint8_t> exif) noexcept;

/// Turns an image upright.
[[nodiscard]] Image apply_orientation(Image image, Orientation orientation);

}  // namespace fovea::media
