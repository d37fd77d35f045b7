// Samples of every kind to 8-bit colours.
#include "media/plugins/tiff_rows.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "media/rgb_convert.h"

namespace fovea::media {
namespace {

template <class T>
T load(const std::uint8_t* row, std::size_t index, bool swapped) noexcept {
  std::array<std::uint8_t, sizeof(T)> bytes;
  std::copy_n(row + index * sizeof(T), sizeof(T), bytes.begin());
  if (swapped) std::ranges::reverse(bytes);
  return std::bit_cast<T>(bytes);
}

/// A sample of at most 12 bits, the first one in the highest bits.
std::uint32_t packed_sample(const std::uint8_t* row, std::size_t index, std::size_t bits) noexcept {
  std::uint32_t value = 0;
  for (std::size_t bit = index * bits; bit < (index + 1) * bits; ++bit)
    value = value << 1 | (row[bit / 8] >> (7 - bit % 8) & 1u);
  return value;
}

std::uint8_t clip(double value) noexcept {
  return value > 0 ? static_cast<std::uint8_t>(std::min(value, 255.0)) : std::uint8_t{0};
}

std::uint8_t clipped_grey(const TiffLayout& layout, const std::uint8_t* row,
                          std::size_t index) noexcept {
  const bool swapped = layout.swaps_bytes;
  if (layout.bits == 12) return clip(packed_sample(row, index, layout.bits));
  if (layout.is_float) return clip(load<float>(row, index, swapped));
  if (layout.bits == 32) return clip(load<std::int32_t>(row, index, swapped));
  if (layout.is_signed) return clip(load<std::int16_t>(row, index, swapped));
  return clip(load<std::uint16_t>(row, index, swapped));
}

/// 8 bits, or the high byte of 16.
std::uint8_t byte_sample(const TiffLayout& layout, const std::uint8_t* row,
                         std::size_t index) noexcept {
  if (layout.bits == 8) return row[index];
  return static_cast<std::uint8_t>(load<std::uint16_t>(row, index, false) >> 8);
}

/// As a grey level of 8 bits.
std::uint8_t scaled_grey(const TiffLayout& layout, const std::uint8_t* row,
                         std::size_t index) noexcept {
  const std::uint32_t most = (1u << layout.bits) - 1;
  const auto level = static_cast<std::uint8_t>(packed_sample(row, index, layout.bits) * 255 / most);
  return layout.white_is_zero ? static_cast<std::uint8_t>(255 - level) : level;
}

void cmyk_to_rgb(const TiffLayout& layout, const std::uint8_t* row, std::size_t first,
                 std::uint8_t* rgb) noexcept {
  std::uint8_t light[4];
  for (std::size_t c = 0; c < 4; ++c)
    light[c] = static_cast<std::uint8_t>(255 - byte_sample(layout, row, first + c));
  inverted_cmyk_to_rgb(light, 1, rgb);
}

/// Where alpha is 0, the colour becomes black.
void divide_by_alpha(std::uint8_t* rgba) noexcept {
  const std::uint32_t alpha = rgba[3];
  for (std::size_t c = 0; c < 3; ++c)
    rgba[c] = alpha == 0 ? std::uint8_t{0}
                         : static_cast<std::uint8_t>(std::min(255u, rgba[c] * 255u / alpha));
}

}  // namespace

void tiff_row_to_rgba(const TiffLayout& layout, const std::uint8_t* row, std::size_t num_pixels,
                      std::uint8_t* rgba) noexcept {
  for (std::size_t x = 0; x < num_pixels; ++x, rgba += 4) {
    const std::size_t first = x * layout.num_samples;
    switch (layout.color) {
      case TiffColor::kGrey: std::fill_n(rgba, 3, scaled_grey(layout, row, first)); break;
      case TiffColor::kClippedGrey: std::fill_n(rgba, 3, clipped_grey(layout, row, first)); break;
      case TiffColor::kPalette:
        std::copy_n(&layout.colors[3 * packed_sample(row, first, layout.bits)], 3, rgba);
        break;
      case TiffColor::kCmyk: cmyk_to_rgb(layout, row, first, rgba); break;
      default:
        for (std::size_t c = 0; c < 3; ++c) rgba[c] = byte_sample(layout, row, first + c);
    }
    const std::size_t alpha_at = first + (layout.alpha == TiffAlpha::kOfGrey ? 1 : 3);
    rgba[3] =
        layout.alpha == TiffAlpha::kNone ? std::uint8_t{255} : byte_sample(layout, row, alpha_at);
    if (layout.alpha == TiffAlpha::kPremultiplied) divide_by_alpha(rgba);
  }
}

}  // namespace fovea::media
