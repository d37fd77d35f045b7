#pragma once

#include <cstddef>
#include <cstdint>

namespace fovea::media {

/// round(a * b / 255) for bytes, in Pillow's integer form: t = a*b + 128; ((t >> 8) + t) >> 8.
[[nodiscard]] constexpr std::uint32_t mul_div_255(std::uint32_t a, std::uint32_t b) noexcept {
  const std::uint32_t t = a * b + 128;
  return ((t >> 8) + t) >> 8;
}

/// Composites RGBA over a background of one colour:
///   t = b*(255 - alpha) + v*alpha + 128; out = ((t >> 8) + t) >> 8
/// @param rgba 4 * num_pixels bytes; @param rgb 3 * num_pixels bytes, must not overlap.
/// Source: docs/reference/image_resize.md, "Decoding to RGB".
void composite_rgba(const std::uint8_t* rgba, std::size_t num_pixels,
                    const std::uint8_t background[3], std::uint8_t* rgb) noexcept;

/// Drops alpha: copies the first three of every four bytes.
void drop_alpha(const std::uint8_t* rgba, std::size_t num_pixels, std::uint8_t* rgb) noexcept;

/// Converts inverted CMYK (255 is no ink), as JPEG files store it, to RGB. With C, M, Y, K as
/// amounts of ink and n = 255 - K: out = n - round(C * n / 255), likewise for M and Y.
/// @param cmyk 4 * num_pixels bytes; @param rgb 3 * num_pixels bytes, must not overlap.
/// Source: docs/reference/image_resize.md, "Decoding to RGB".
void inverted_cmyk_to_rgb(const std::uint8_t* cmyk, std::size_t num_pixels,
                          std::uint8_t* rgb) noexcept;

/// Replaces every pixel of the colour `key` by `background`.
/// @param rgb 3 * num_pixels bytes.
void replace_color(std::uint8_t* rgb, std::size_t num_pixels, const std::uint8_t key[3],
                   const std::uint8_t background[3]) noexcept;

/// Expands big-endian 16-bit grey to RGB, clipped, not scaled: min(v, 255).
void clip_grey16(const std::uint8_t* grey, std::size_t num_pixels, std::uint8_t* rgb) noexcept;

}  // namespace fovea::media
