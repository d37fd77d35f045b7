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

/// The frame of a still image, after checks.
/// @param out the pixels that it will fill.
/// @throws Error(kInvalidArgument) for another number or size of frames than planned.
[[nodiscard]] RgbView still_frame(const ItemPlan& plan, std::span<const RgbView> frames,
                                  std::span<const std::uint8_t> out);

/// An image resized, [height_px, width_px, 3].
[[nodiscard]] std::vector<std::uint8_t> resized(
    RgbView image, std::int64_t width_px, std::int64_t height_px, media::ResizeEngine engine,
    media::ResizeFilter filter = media::ResizeFilter::kBicubic);

/// Copies an image to (left_px, top_px) of a canvas, where it fits.
/// @param canvas [height, canvas_width_px, 3], no overlap with the image.
void paste(RgbView image, std::int64_t left_px, std::int64_t top_px, std::int64_t canvas_width_px,
           std::span<std::uint8_t> canvas);

/// Cuts an image of exactly these tiles into them, row by row of the image.
/// @param image [rows * side, cols * side, 3]. @param out [tiles, side, side, 3], no overlap.
void cut_tiles(std::span<const std::uint8_t> image, Tiling tiling, std::int64_t tile_side_px,
               std::span<std::uint8_t> out);

}  // namespace fovea::blocks
