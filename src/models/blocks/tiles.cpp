// Large images in square pieces. Divisions are done in double, as the vendors' code does.
#include "models/blocks/tiles.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/check.h"

namespace fovea::blocks {

namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

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

RgbView still_frame(const ItemPlan& plan, std::span<const RgbView> frames,
                    std::span<const std::uint8_t> out) {
  FOVEA_CHECK(frames.size() == 1, kInvalidArgument, "an image has 1 frame, got ", frames.size());
  const RgbView& image = frames.front();
  FOVEA_CHECK(image.width_px == plan.source_width_px && image.height_px == plan.source_height_px,
              kInvalidArgument, "image is ", image.width_px, "x", image.height_px,
              " pixels, planned was ", plan.source_width_px, "x", plan.source_height_px);
  FOVEA_CHECK(out.size() == plan.pixel_bytes, kInternal, "pixels need ", plan.pixel_bytes,
              " bytes, got ", out.size());
  return image;
}

std::vector<std::uint8_t> resized(RgbView image, std::int64_t width_px, std::int64_t height_px,
                                  media::ResizeEngine engine, media::ResizeFilter filter) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(width_px * height_px * 3));
  media::resize_rgb(
      {.src = {image.rgb, static_cast<std::size_t>(image.width_px * image.height_px * 3)},
       .src_width_px = image.width_px,
       .src_height_px = image.height_px,
       .dst = pixels,
       .dst_width_px = width_px,
       .dst_height_px = height_px,
       .engine = engine,
       .filter = filter});
  return pixels;
}

void paste(RgbView image, std::int64_t left_px, std::int64_t top_px, std::int64_t canvas_width_px,
           std::span<std::uint8_t> canvas) {
  const std::int64_t row_bytes = image.width_px * 3;
  for (std::int64_t y = 0; y < image.height_px; ++y) {
    std::copy_n(image.rgb + y * row_bytes, row_bytes,
                canvas.begin() + ((top_px + y) * canvas_width_px + left_px) * 3);
  }
}

void cut_tiles(std::span<const std::uint8_t> image, Tiling tiling, std::int64_t tile_side_px,
               std::span<std::uint8_t> out) {
  const std::int64_t row_bytes = tiling.cols * tile_side_px * 3;
  auto next = out.begin();
  for (std::int64_t tile_y = 0; tile_y < tiling.rows; ++tile_y) {
    for (std::int64_t tile_x = 0; tile_x < tiling.cols; ++tile_x) {
      for (std::int64_t y = 0; y < tile_side_px; ++y) {
        const std::int64_t from =
            (tile_y * tile_side_px + y) * row_bytes + tile_x * tile_side_px * 3;
        next = std::copy_n(image.begin() + from, tile_side_px * 3, next);
      }
    }
  }
}

}  // namespace fovea::blocks
