// From an image to the tiles of its canvas, with the roundings of the reference: ratios to a canvas
// are f32 there, because sizes of canvases are elements of a tensor, and other ratios are double.
#include "models/llama4/processor.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/frames.h"
#include "models/common/processor_file.h"
#include "models/common/views/tiles.h"

namespace fovea::llama4 {

namespace {

using common::Tiling;

/// A side of the size that an image is fitted into.
struct Target {
  std::int64_t side = 0;
  bool is_canvas = false;  ///< the canvas decided it: arithmetic with it is f32
};

double ratio(const Target& target, std::int64_t side) {
  if (target.is_canvas) return static_cast<float>(target.side) / static_cast<float>(side);
  return static_cast<double>(target.side) / static_cast<double>(side);
}

/// floor(side * ratio), at least 1 and at most `most`. @param scale decides the arithmetic.
std::int64_t scaled(std::int64_t side, double ratio, const Target& scale, std::int64_t most) {
  const double product = scale.is_canvas ? static_cast<float>(side) * static_cast<float>(ratio)
                                         : static_cast<double>(side) * ratio;
  return std::clamp<std::int64_t>(static_cast<std::int64_t>(std::floor(product)), 1, most);
}

/// How much an image can be enlarged to fit a canvas.
float canvas_scale(Tiling canvas, std::int64_t tile_px, std::int64_t width_px,
                   std::int64_t height_px) {
  return std::min(static_cast<float>(canvas.cols * tile_px) / static_cast<float>(width_px),
                  static_cast<float>(canvas.rows * tile_px) / static_cast<float>(height_px));
}

/// The canvas that enlarges least, or shrinks least if none enlarges; the smallest of them.
Tiling choose_canvas(const Processing& p, std::int64_t width_px, std::int64_t height_px) {
  const auto is_better = [&](float scale, float best) {
    if ((scale >= 1) != (best >= 1)) return scale >= 1;
    return scale >= 1 && !p.resize_to_max_canvas ? scale < best : scale > best;
  };
  Tiling chosen;
  float best = canvas_scale(chosen, p.tile.side_px, width_px, height_px);
  for (std::int64_t rows = 1; rows <= p.max_patches; ++rows) {
    for (std::int64_t cols = 1; cols <= p.max_patches / rows; ++cols) {
      const Tiling canvas{.cols = cols, .rows = rows};
      const float scale = canvas_scale(canvas, p.tile.side_px, width_px, height_px);
      const bool is_smaller = scale == best && canvas.count() < chosen.count();
      if (is_better(scale, best) || is_smaller) {
        chosen = canvas;
        best = scale;
      }
    }
  }
  return chosen;
}

}  // namespace

Processing read_processing(const checkpoint::HfConfig& files, const Config& config,
                           const MediaOptions& media) {
  constexpr std::int64_t kMostTiles = 1024;
  constexpr auto kTorchvision = media::ResizeEngine::kTorchvision;
  Processing p{.tile = config.view, .engine = common::resize_engine(media, kTorchvision)};
  const auto file = files.image_processor();
  if (file) {
    common::check_size(*file, p.tile.side_px);
    common::require_number(*file, "resample", 2);  // Pillow's number of bilinear
    p.max_patches = common::read_size(*file, "max_patches", p.max_patches, kMostTiles);
    p.resize_to_max_canvas = file->bool_or("resize_to_max_canvas", p.resize_to_max_canvas);
    p.scaling = common::read_scaling(*file, p.scaling);
  }
  p.assumptions = common::missing_text(
      files, {common::assumed(file, "max_patches", cat(p.max_patches)),
              common::assumed(file, "image_mean", common::channel_text(p.scaling.image_mean)),
              common::assumed(file, "image_std", common::channel_text(p.scaling.image_std))});
  p.sources = common::sources_text(
      "image", file,
      common::sourced(file, {"size", "max_patches", "resize_to_max_canvas", "image_mean",
                             "image_std", "rescale_factor", "resample"}));
  return p;
}

Placement place_image(const Processing& p, std::int64_t width_px, std::int64_t height_px) {
  const Tiling canvas = choose_canvas(p, width_px, height_px);
  // Enlarged to one tile at most, unless the whole canvas is wanted.
  const auto target = [&](std::int64_t side_px, std::int64_t tiles) {
    const std::int64_t canvas_px = tiles * p.tile.side_px;
    const std::int64_t wanted = std::max(side_px, p.tile.side_px);
    if (p.resize_to_max_canvas || wanted > canvas_px) return Target{canvas_px, true};
    return Target{wanted, false};
  };
  const Target width = target(width_px, canvas.cols);
  const Target height = target(height_px, canvas.rows);
  const double by_width = ratio(width, width_px);
  const double by_height = ratio(height, height_px);
  const bool in_f32 = width.is_canvas || height.is_canvas;
  const bool is_wide =
      in_f32 ? static_cast<float>(by_width) < static_cast<float>(by_height) : by_width < by_height;
  if (is_wide) return {canvas, width.side, scaled(height_px, by_width, width, height.side)};
  return {canvas, scaled(width_px, by_height, height, width.side), height.side};
}

ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  common::check_area(width_px, height_px);
  const Placement place = place_image(p_, width_px, height_px);
  const bool has_thumbnail = place.canvas.count() > 1;
  ItemPlan plan = common::plan_tiles(width_px, height_px, place.canvas,
                                     {p_.tile, place.canvas.count() + (has_thumbnail ? 1 : 0)});
  const std::int64_t thumbnail_px = has_thumbnail ? p_.tile.side_px : 0;
  plan.target_width_px = std::max(place.width_px, thumbnail_px);
  plan.target_height_px = std::max(place.height_px, thumbnail_px);
  return plan;
}

void Processor::fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& image,
                           std::span<std::uint8_t> out) const {
  constexpr auto kBilinear = media::ResizeFilter::kBilinear;
  common::check_frame(plan, index, image, out);
  const std::int64_t side = p_.tile.side_px;
  const Placement place = place_image(p_, plan.source_width_px, plan.source_height_px);
  const media::Image placed =
      common::resized(image, place.width_px, place.height_px, p_.engine, kBilinear);
  common::cut_tiles(common::view_of(placed), place.canvas, side, out);
  if (place.canvas.count() > 1) {
    common::resize(image, side, side, p_.engine, kBilinear, out.last(p_.tile.pixel_bytes()));
  }
}

}  // namespace fovea::llama4
