// From an image to its view on a canvas and its tiles.
#include "models/common/views/canvas_tiles.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "models/common/frames.h"
#include "models/common/processor_file.h"

namespace fovea::common {

namespace {

double f64(std::int64_t value) { return static_cast<double>(value); }

std::int64_t rounded(double value) { return static_cast<std::int64_t>(std::nearbyint(value)); }

}  // namespace

CanvasRect pillow_fit(std::int64_t canvas_width_px, std::int64_t canvas_height_px,
                      std::int64_t width_px, std::int64_t height_px) {
  CanvasRect rect{0, 0, canvas_width_px, canvas_height_px};
  const double image_ratio = f64(width_px) / f64(height_px);
  const double canvas_ratio = f64(canvas_width_px) / f64(canvas_height_px);
  if (image_ratio > canvas_ratio) {
    rect.height = rounded(f64(height_px) / f64(width_px) * f64(canvas_width_px));
  } else if (image_ratio < canvas_ratio) {
    rect.width = rounded(f64(width_px) / f64(height_px) * f64(canvas_height_px));
  }
  rect.x = rounded(f64(canvas_width_px - rect.width) * 0.5);
  rect.y = rounded(f64(canvas_height_px - rect.height) * 0.5);
  return rect;
}

CanvasRect square_pillow_fit(std::int64_t side, std::int64_t width_px, std::int64_t height_px) {
  return pillow_fit(side, side, width_px, height_px);
}

std::optional<Tiling> tiling_of(const ItemPlan& plan) {
  const Tiling tiling{.cols = plan.grid[2], .rows = plan.grid[1]};
  return tiling.count() > 1 ? std::optional(tiling) : std::nullopt;
}

Tiling CanvasTilesProcessor::choose_tiling(std::int64_t width_px, std::int64_t height_px) const {
  if (v_.max_tiles == 0 || std::max(width_px, height_px) <= v_.tile_threshold_px) return {};
  return nearest_tiling(width_px, height_px, v_.tile.side_px, v_.min_tiles, v_.max_tiles);
}

ItemPlan CanvasTilesProcessor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  const SquareView& canvas = v_.canvas;
  const SquareView& tile = v_.tile;
  check_area(width_px, height_px);
  const CanvasRect rect = v_.fit(canvas.side_px, width_px, height_px);
  FOVEA_CHECK(rect.width >= 1 && rect.height >= 1, kInvalidArgument, "image of ", width_px, "x",
              height_px, " pixels is too thin: fitted into ", canvas.side_px, "x", canvas.side_px,
              " it would be ", rect.width, "x", rect.height);
  const Tiling tiling = choose_tiling(width_px, height_px);
  const std::int64_t tiles = tiling.count() > 1 ? tiling.count() : 0;

  ItemPlan plan = plan_views(width_px, height_px, tiling, {{canvas, 1}, {tile, tiles}});
  plan.resized_width_px = tiles > 0 ? tiling.cols * tile.side_px : canvas.side_px;
  plan.resized_height_px = tiles > 0 ? tiling.rows * tile.side_px : canvas.side_px;
  plan.target_width_px = std::max(rect.width, tiles > 0 ? plan.resized_width_px : 0);
  plan.target_height_px = std::max(rect.height, tiles > 0 ? plan.resized_height_px : 0);
  return plan;
}

void CanvasTilesProcessor::fill_frame(const ItemPlan& plan, std::int64_t index,
                                      const RgbView& image, std::span<std::uint8_t> out) const {
  check_frame(plan, index, image, out);
  const std::size_t canvas_bytes = v_.canvas.pixel_bytes();
  fill_canvas(plan, image, out.first(canvas_bytes));
  if (const auto tiling = tiling_of(plan)) {
    const media::Image large =
        resized(image, plan.resized_width_px, plan.resized_height_px, v_.engine);
    cut_tiles(view_of(large), *tiling, v_.tile.side_px, out.subspan(canvas_bytes));
  }
}

void CanvasTilesProcessor::fill_canvas(const ItemPlan& plan, RgbView image,
                                       std::span<std::uint8_t> out) const {
  const std::int64_t side = v_.canvas.side_px;
  const CanvasRect rect = v_.fit(side, plan.source_width_px, plan.source_height_px);
  const media::Image fitted = resized(image, rect.width, rect.height, v_.engine);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = v_.background[i % 3];
  paste(view_of(fitted), rect.x, rect.y, side, out);
}

ToTensorScaling read_to_tensor_scaling(const checkpoint::HfConfig& files) {
  ToTensorScaling s;
  std::optional<JsonView> file;
  if (files.processor) {
    file = files.processor->root();
    s.image_mean = read_channels(*file, "image_mean", s.image_mean);
    s.image_std = read_positive_channels(*file, "image_std", s.image_std);
  }
  s.assumptions = missing_text(files.directory + "/processor_config.json", file.has_value(),
                               {assumed(file, "image_mean", channel_text(s.image_mean)),
                                assumed(file, "image_std", channel_text(s.image_std))});
  s.sources = sources_text("image", file, sourced(file, {"image_mean", "image_std"}));
  return s;
}

}  // namespace fovea::common
