#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>

#include "fovea/tower/models/item_processor.h"
#include "media/image.h"
#include "models/common/geometry.h"
#include "models/common/grid/smart_resize.h"

namespace fovea::common {

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

/// Copies the square whose upper left corner is a place in an image, or beyond it. What the image
/// does not cover is black.
/// @param out [side, side, 3], no overlap with the image.
void cut_square(RgbView image, std::int64_t left_px, std::int64_t top_px, std::int64_t side_px,
                std::span<std::uint8_t> out);

/// The same of a part of any shape, into memory of its own.
[[nodiscard]] media::Image cut(RgbView image, std::int64_t left_px, std::int64_t top_px,
                               Size2d size);

/// As cut_square for all tiles of an image, row by row of it. @param out [tiles, tile, 3].
void cut_tiles(RgbView image, Tiling tiling, Size2d tile, std::span<std::uint8_t> out);
inline void cut_tiles(RgbView image, Tiling tiling, std::int64_t side_px,
                      std::span<std::uint8_t> out) {
  cut_tiles(image, tiling, Size2d{side_px, side_px}, out);
}

/// Equal views of an item.
struct ViewCount {
  const SquareView& view;
  std::int64_t count = 1;
};

/// An image with the views that it has on each path: they are its units, its rows are all their
/// tokens, plan.grid is (1, tile rows, tile columns). The resized and the target size are left to
/// the caller, and so are further rows.
[[nodiscard]] ItemPlan plan_views(std::int64_t width_px, std::int64_t height_px, Tiling tiling,
                                  std::initializer_list<ViewCount> paths);

/// An image with one path, resized to tiles of its size, which is its target, too. @param views
/// tiles and a thumbnail, if any.
[[nodiscard]] ItemPlan plan_tiles(std::int64_t width_px, std::int64_t height_px, Tiling tiling,
                                  const ViewCount& views);

}  // namespace fovea::common
