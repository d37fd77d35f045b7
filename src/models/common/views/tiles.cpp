// Large images in square pieces. Divisions are done in double, as the vendors' code does.
#include "models/common/views/tiles.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fovea::common {

namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

/// @param out [size, 3].
void cut_part(RgbView image, std::int64_t left_px, std::int64_t top_px, Size2d size,
              std::span<std::uint8_t> out) {
  auto next = out.begin();
  for (std::int64_t y = top_px; y < top_px + size.height_px; ++y) {
    const std::int64_t covered = y < image.height_px ? image.width_px - left_px : 0;
    const std::int64_t cols = std::clamp<std::int64_t>(covered, 0, size.width_px);
    if (cols > 0) {
      next = std::copy_n(image.rgb + (y * image.width_px + left_px) * 3, cols * 3, next);
    }
    next = std::fill_n(next, (size.width_px - cols) * 3, std::uint8_t{0});
  }
}

}  // namespace

Tiling nearest_tiling(std::int64_t width_px, std::int64_t height_px, std::int64_t tile_side_px,
                      std::int64_t min_tiles, std::int64_t max_tiles) {
  const double aspect = as_double(width_px) / as_double(height_px);
  const double pixels = as_double(width_px) * as_double(height_px);
  const double tile_pixels = as_double(tile_side_px) * as_double(tile_side_px);
  double best_distance = std::numeric_limits<double>::infinity();
  Tiling best;
  for (std::int64_t count = min_tiles; count <= max_tiles; ++count) {
    for (std::int64_t cols = 1; cols <= count; ++cols) {
      if (count % cols != 0) continue;
      const Tiling tiling{cols, count / cols};
      const double distance = std::abs(aspect - as_double(tiling.cols) / as_double(tiling.rows));
      const bool has_pixels = pixels > 0.5 * tile_pixels * as_double(count);
      if (distance < best_distance || (distance == best_distance && has_pixels)) {
        best = tiling;
        best_distance = distance;
      }
    }
  }
  return best;
}

void cut_square(RgbView image, std::int64_t left_px, std::int64_t top_px, std::int64_t side_px,
                std::span<std::uint8_t> out) {
  cut_part(image, left_px, top_px, {side_px, side_px}, out);
}

media::Image cut(RgbView image, std::int64_t left_px, std::int64_t top_px, Size2d size) {
  media::Image part{size.width_px, size.height_px, {}};
  part.rgb.resize(static_cast<std::size_t>(size.width_px * size.height_px * 3));
  cut_part(image, left_px, top_px, size, part.rgb);
  return part;
}

void cut_tiles(RgbView image, Tiling tiling, Size2d tile, std::span<std::uint8_t> out) {
  const auto tile_bytes = static_cast<std::size_t>(tile.height_px * tile.width_px * 3);
  for (std::int64_t i = 0; i < tiling.count(); ++i, out = out.subspan(tile_bytes)) {
    cut_part(image, i % tiling.cols * tile.width_px, i / tiling.cols * tile.height_px, tile,
             out.first(tile_bytes));
  }
}

ItemPlan plan_views(std::int64_t width_px, std::int64_t height_px, Tiling tiling,
                    std::initializer_list<ViewCount> paths) {
  ItemPlan plan;
  plan.source_width_px = width_px;
  plan.source_height_px = height_px;
  plan.grid = {1, tiling.rows, tiling.cols};
  plan.spec.num_seqs = 1;  // sequences are views, whose number the capacity in tokens bounds
  std::size_t path = 0;
  for (const auto& [view, count] : paths) {
    plan.unit_bytes[path] = view.pixel_bytes();
    plan.pixel_bytes += static_cast<std::size_t>(count) * view.pixel_bytes();
    plan.spec.units[path] = {count, view.patches(), view.tokens()};
    plan.spec.path_tokens[path] = count * view.tokens();
    plan.spec.input_rows += count * view.patches();
    plan.spec.out_rows += plan.spec.path_tokens[path++];
  }
  return plan;
}

ItemPlan plan_tiles(std::int64_t width_px, std::int64_t height_px, Tiling tiling,
                    const ViewCount& views) {
  ItemPlan plan = plan_views(width_px, height_px, tiling, {views});
  plan.resized_width_px = tiling.cols * views.view.side_px;
  plan.resized_height_px = tiling.rows * views.view.side_px;
  plan.target_width_px = plan.resized_width_px;
  plan.target_height_px = plan.resized_height_px;
  return plan;
}

}  // namespace fovea::common
