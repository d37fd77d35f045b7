#pragma once

#include <cstdint>
#include <span>

#include "fovea/tower/core/margins.h"

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

/// The orientation that Pillow finds in the metadata of an image: that of the EXIF block (a TIFF
/// header and its first directory, with or without "Exif\0\0" in front), or if it has no such
/// entry, that of the XMP packet. Either may be empty. Anything absent, damaged or out of range is
/// upright: an image does not fail because of its metadata.
/// Source: docs/reference/image_resize.md, "Orientation".
[[nodiscard]] Orientation read_orientation(std::span<const std::uint8_t> exif,
                                           std::span<const std::uint8_t> xmp) noexcept;

/// Whether an EXIF block has an entry for the orientation, be it in range or not, or is no TIFF.
[[nodiscard]] bool has_exif_orientation(std::span<const std::uint8_t> exif) noexcept;

/// Whether turning upright swaps width and height.
[[nodiscard]] constexpr bool swaps_sides(Orientation orientation) noexcept {
  return orientation >= Orientation::kTranspose;
}

/// Whether stored rows, from left to right, run to the left of the upright image, or if they become
/// columns, up.
[[nodiscard]] constexpr bool reverses_x(Orientation orientation) noexcept {
  return orientation == Orientation::kMirrorHorizontal || orientation == Orientation::kRotate180 ||
         orientation == Orientation::kTransverse || orientation == Orientation::kRotate270;
}
/// The same for stored columns, from top to bottom.
[[nodiscard]] constexpr bool reverses_y(Orientation orientation) noexcept {
  return orientation == Orientation::kRotate180 || orientation == Orientation::kMirrorVertical ||
         orientation == Orientation::kRotate90 || orientation == Orientation::kTransverse;
}

/// The margins of the upright image, from those of the stored one.
[[nodiscard]] Margins turned(const Margins& stored, Orientation orientation) noexcept;

}  // namespace fovea::media
