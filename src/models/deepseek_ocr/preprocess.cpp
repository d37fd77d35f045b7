// From a picture to its global view and its tiles. Divisions are done in double and rounded half to
// even, as the vendor's code does.
#include "models/deepseek_ocr/preprocess.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/check.h"
#include "media/resize.h"

namespace fovea::deepseek_ocr {

namespace {

constexpr std::uint8_t kCanvasGrey = 127;  // int(0.5 * 255)

double as_double(std::int64_t value) { return static_cast<double>(value); }

std::int64_t round_half_even(double value) {
  return static_cast<std::int64_t>(std::nearbyint(value));
}

struct Rect {
  std::int64_t x = 0, y = 0, width = 0, height = 0;
};

/// Where the picture lies on the global view's canvas.
Rect fit_on_canvas(std::int64_t side, std::int64_t width_px, std::int64_t height_px) {
  Rect rect{0, 0, side, side};
  if (width_px > height_px) {
    rect.height = round_half_even(as_double(height_px) / as_double(width_px) * as_double(side));
  } else if (height_px > width_px) {
    rect.width = round_half_even(as_double(width_px) / as_double(height_px) * as_double(side));
  }
  rect.x = round_half_even(as_double(side - rect.width) * 0.5);
  rect.y = round_half_even(as_double(side - rect.height) * 0.5);
  return rect;
}

std::vector<std::uint8_t> resized(const PreprocessConfig& config, RgbView picture,
                                  std::int64_t width_px, std::int64_t height_px) {
  std::vector<std::uint8_t> pixels(static_cast<std::size_t>(width_px * height_px * 3));
  media::resize_rgb(
      {.src = {picture.rgb, static_cast<std::size_t>(picture.width_px * picture.height_px * 3)},
       .src_width_px = picture.width_px,
       .src_height_px = picture.height_px,
       .dst = pixels,
       .dst_width_px = width_px,
       .dst_height_px = height_px,
       .engine = config.engine,
       .filter = media::ResizeFilter::kBicubic});
  return pixels;
}

void fill_global(const PreprocessConfig& config, RgbView picture, std::span<std::uint8_t> out) {
  const std::int64_t side = config.base.side_px;
  const Rect rect = fit_on_canvas(side, picture.width_px, picture.height_px);
  const std::vector<std::uint8_t> pixels = resized(config, picture, rect.width, rect.height);
  std::ranges::fill(out, kCanvasGrey);
  for (std::int64_t y = 0; y < rect.height; ++y) {
    std::copy_n(pixels.begin() + y * rect.width * 3, rect.width * 3,
                out.begin() + ((rect.y + y) * side + rect.x) * 3);
  }
}

void fill_tiles(const PreprocessConfig& config, Tiling tiling, RgbView picture,
                std::span<std::uint8_t> out) {
  const std::int64_t side = config.tile.side_px;
  const std::int64_t canvas_width = side * tiling.cols;
  const std::vector<std::uint8_t> canvas =
      resized(config, picture, canvas_width, side * tiling.rows);
  auto next = out.begin();
  for (std::int64_t tile_y = 0; tile_y < tiling.rows; ++tile_y) {
    for (std::int64_t tile_x = 0; tile_x < tiling.cols; ++tile_x) {
      for (std::int64_t y = 0; y < side; ++y) {
        const std::int64_t from = ((tile_y * side + y) * canvas_width + tile_x * side) * 3;
        next = std::copy_n(canvas.begin() + from, side * 3, next);
      }
    }
  }
}

}  // namespace

Tiling choose_tiling(const PreprocessConfig& config, std::int64_t width_px,
                     std::int64_t height_px) {
  if (width_px <= config.tile_threshold_px && height_px <= config.tile_threshold_px) return {};
  const double aspect = as_double(width_px) / as_double(height_px);
  const double tile_area = as_double(config.tile.side_px) * as_double(config.tile.side_px);
  double best_distance = std::numeric_limits<double>::infinity();
  Tiling best;
  for (std::int64_t area = config.min_crops; area <= config.max_crops; ++area) {
    for (std::int64_t cols = 1; cols <= area; ++cols) {
      if (area % cols != 0) continue;
      const Tiling tiling{cols, area / cols};
      const double distance = std::abs(aspect - as_double(tiling.cols) / as_double(tiling.rows));
      const bool has_pixels =
          as_double(width_px) * as_double(height_px) > 0.5 * tile_area * as_double(area);
      if (distance < best_distance || (distance == best_distance && has_pixels)) {
        best = tiling;
        best_distance = distance;
      }
    }
  }
  return best;
}

ItemPlan plan_image(const PreprocessConfig& config, std::int64_t width_px, std::int64_t height_px) {
  FOVEA_CHECK(width_px >= 1 && height_px >= 1, kInvalidArgument, "picture of ", width_px, "x",
              height_px, " pixels has no area");
  const Rect rect = fit_on_canvas(config.base.side_px, width_px, height_px);
  FOVEA_CHECK(rect.width >= 1 && rect.height >= 1, kInvalidArgument, "picture of ", width_px, "x",
              height_px, " pixels is too thin: fitted into ", config.base.side_px, "x",
              config.base.side_px, " it would be ", rect.width, "x", rect.height);
  const Tiling tiling = choose_tiling(config, width_px, height_px);
  const std::int64_t tiles = tiling.count();
  const std::int64_t q = config.base.tokens_side();
  const std::int64_t l = config.tile.tokens_side();

  ItemPlan plan;
  plan.source_width_px = width_px;
  plan.source_height_px = height_px;
  plan.resized_width_px = tiles > 0 ? tiling.cols * config.tile.side_px : config.base.side_px;
  plan.resized_height_px = tiles > 0 ? tiling.rows * config.tile.side_px : config.base.side_px;
  plan.grid = {1, tiling.rows, tiling.cols};
  plan.pixel_bytes =
      config.base.pixel_bytes() + static_cast<std::size_t>(tiles) * config.tile.pixel_bytes();
  plan.spec.input_rows =
      config.base.grid() * config.base.grid() + tiles * config.tile.grid() * config.tile.grid();
  const std::int64_t local_rows = tiles > 0 ? tiling.rows * l * (tiling.cols * l + 1) : 0;
  plan.spec.out_rows = local_rows + q * (q + 1) + 1;
  plan.spec.num_seqs = 1;
  plan.spec.path_tokens[kGlobal] = q * (q + 1);
  plan.spec.path_tokens[kLocal] = tiles * l * l;
  return plan;
}

Tiling tiling_of(const ItemPlan& plan) { return {plan.grid[2], plan.grid[1]}; }

void fill_pixels(const PreprocessConfig& config, const ItemPlan& plan, RgbView picture,
                 std::span<std::uint8_t> out) {
  FOVEA_CHECK(
      picture.width_px == plan.source_width_px && picture.height_px == plan.source_height_px,
      kInvalidArgument, "picture is ", picture.width_px, "x", picture.height_px,
      " pixels, planned was ", plan.source_width_px, "x", plan.source_height_px);
  FOVEA_CHECK(out.size() == plan.pixel_bytes, kInternal, "pixels need ", plan.pixel_bytes,
              " bytes, got ", out.size());
  fill_global(config, picture, out.first(config.base.pixel_bytes()));
  const Tiling tiling = tiling_of(plan);
  if (tiling.tiled()) {
    fill_tiles(config, tiling, picture, out.subspan(config.base.pixel_bytes()));
  }
}

}  // namespace fovea::deepseek_ocr
