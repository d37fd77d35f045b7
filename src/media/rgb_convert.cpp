// Pixel conversions of Pillow's convert("RGB") and of compositing on a background.
#include "media/rgb_convert.h"

#include <algorithm>

namespace fovea::media {

void composite_rgba(const std::uint8_t* rgba, std::size_t num_pixels,
                    const std::uint8_t background[3], std::uint8_t* rgb) noexcept {
  for (std::size_t i = 0; i < num_pixels; ++i) {
    const std::uint32_t alpha = rgba[4 * i + 3];
    for (std::size_t c = 0; c < 3; ++c) {
      const std::uint32_t t = background[c] * (255 - alpha) + rgba[4 * i + c] * alpha + 128;
      rgb[3 * i + c] = static_cast<std::uint8_t>(((t >> 8) + t) >> 8);
    }
  }
}

void drop_alpha(const std::uint8_t* rgba, std::size_t num_pixels, std::uint8_t* rgb) noexcept {
  for (std::size_t i = 0; i < num_pixels; ++i) std::copy_n(rgba + 4 * i, 3, rgb + 3 * i);
}

void inverted_cmyk_to_rgb(const std::uint8_t* cmyk, std::size_t num_pixels,
                          std::uint8_t* rgb) noexcept {
  for (std::size_t i = 0; i < num_pixels; ++i) {
    const std::uint32_t light = cmyk[4 * i + 3];  // n = 255 - K
    for (std::size_t c = 0; c < 3; ++c) {
      const std::uint32_t ink = 255u - cmyk[4 * i + c];
      rgb[3 * i + c] = static_cast<std::uint8_t>(light - mul_div_255(ink, light));
    }
  }
}

void replace_color(std::uint8_t* rgb, std::size_t num_pixels, const std::uint8_t key[3],
                   const std::uint8_t background[3]) noexcept {
  for (std::uint8_t* pixel = rgb; pixel != rgb + 3 * num_pixels; pixel += 3)
    if (std::equal(pixel, pixel + 3, key)) std::copy_n(background, 3, pixel);
}

void clip_grey16(const std::uint8_t* grey, std::size_t num_pixels, std::uint8_t* rgb) noexcept {
  for (std::size_t i = 0; i < num_pixels; ++i) {
    const std::uint8_t clipped = grey[2 * i] != 0 ? std::uint8_t{255} : grey[2 * i + 1];
    std::fill_n(rgb + 3 * i, 3, clipped);
  }
}

}  // namespace fovea::media
