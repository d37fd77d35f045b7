#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "media/bytes.h"

namespace fovea::media {

/// How the pixels of a BMP file are coded.
enum class BmpCoding : std::uint8_t {
  kIndices,  ///< rows of indices into BmpLayout::colors, of `bits` bits, the first one highest
  kRgb555,   ///< rows of 16-bit words
  kRgb565,
  kBytes,  ///< rows of pixels of bits / 8 bytes, whose places are in BmpLayout::places
  kRle8,   ///< runs of indices
  kRle4
};

/// Facts that the header of a BMP file states about its pixels.
struct BmpLayout {
  static constexpr std::int8_t kOpaque = -1;  ///< place of an alpha that is not there

  std::int64_t width_px = 0;
  std::int64_t height_px = 0;
  bool top_down = false;  ///< the first row of the file is the top one
  BmpCoding coding = BmpCoding::kIndices;
  int bits = 0;                            ///< of a pixel in a row
  std::size_t row_bytes = 0;               ///< from a row to the next, of coded rows
  std::size_t pixels_at = 0;               ///< in the file; may be behind its end
  std::array<std::int8_t, 4> places{};     ///< of red, green, blue and alpha in a pixel
  std::array<std::uint8_t, 768> colors{};  ///< RGB by index; those behind the palette are black

  [[nodiscard]] bool has_alpha() const noexcept {
    return coding == BmpCoding::kBytes && places[3] != kOpaque;
  }
};

/// Reads the header and the palette of a BMP file as Pillow does.
/// @param name of the image, for messages.
/// @throws Error(kCorruptData) if the file ends in its header or the header contradicts itself,
/// Error(kUnsupported) for a kind of header, depth, layout of bits or compression that Pillow does
/// not read.
/// Source: docs/reference/image_resize.md, "BMP".
[[nodiscard]] BmpLayout read_bmp_layout(Bytes file, std::string_view name);

}  // namespace fovea::media
