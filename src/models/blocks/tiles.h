#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "media/resize/resize.h"
#include "models/item_processor.h"

namespace fovea::blocks {

/// Columns and rows of square tiles.
struct Tiling {
  std::int64_t cols = 1;
  std::int64_t rows = 1;

  [[nodiscard]] std::int64_t count() const { return cols * rows; }
  friend bool operator==(const Tiling&, const Tiling&) = default;
};

/// The tiling of min_tiles to max_tiles tiles whose aspect ratio is nearest to that of the image;
/// among equally near ones the larger, if the image has more than half of its pixels.
/// @param tile_side_px of a tile. Source: docs/reference/deepseek_ocr.md, "Tiles".
[[nodiscard]] Tiling nearest_tiling(std::int64_t width_px, std::int64_t height_px,
                                    std::int64_t tile_side_px, std::int64_t min_tiles,
                                    std::int64_t max_tiles);

/// An image resized by the bicubic filter, [height_px, width_px, 3].
[[nodiscard]] std::vector<std::uint8_t> resized(RgbView image, std::int64_t width_px,
                                                std::int64_t height_px, media::ResizeEngine engine);

/// Cuts an image of exactly these tiles into them, row by row of the image.
/// @param image [rows * side, cols * side, 3]. @param out [tiles, side, side, 3], no overlap.
void cut_tiles(std::span<const std::uint8_t> image, Tiling tiling, std::int64_t tile_side_px,
               std::span<std::uint8_t> out);

}  // namespace fovea::blocks
