#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "media/bytes.h"

namespace fovea::media {

/// The first frame of a GIF file and the canvas that it lies on.
struct GifFrame {
  std::int64_t canvas_width_px = 0;  ///< of the logical screen, or as far as the frame reaches
  std::int64_t canvas_height_px = 0;
  std::int64_t x_px = 0;  ///< of the frame, on the canvas
  std::int64_t y_px = 0;
  std::int64_t width_px = 0;
  std::int64_t height_px = 0;
  bool interlaced = false;
  std::optional<std::uint8_t> transparent;  ///< index
  std::array<std::uint8_t, 768> colors{};   ///< RGB by index; those behind the palette are black
  std::size_t data_at = 0;                  ///< of the codes, from their first size on
};

/// Reads the blocks of a GIF file up to the pixels of its first frame, as Pillow does.
/// @param name of the image, for messages.
/// @throws Error(kCorruptData) if there is no frame, or the file ends in front of its pixels.
/// Source: docs/reference/image_resize.md, "GIF".
[[nodiscard]] GifFrame read_gif_frame(Bytes file, std::string_view name);

}  // namespace fovea::media
