// From an image to the tiles of its canvas, with the roundings of the reference: ratios to a canvas
// are f32 there, because sizes of canvases are elements of a tensor, and other ratios are double.
#include "models/llama4/processor.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/check.h"
#include "models/blocks/config_reader.h"
#include "models/blocks/processor_file.h"

namespace fovea::llama4 {

namespace {

using blocks::Tiling;

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

std::vector<std::uint8_t> resized(const Processing& p, RgbView image, std::int64_t width_px,
                                  std::int64_t height_px) {
  return blocks::resized(image, width_px, height_px, p.engine, media::ResizeFilter::kBilinear);
}

void check_file(const JsonView& file, std::int64_t side_px) {
  if (const auto size = file.find("size")) {
    for (const char* key : {"height", "width"}) {
      const std::int64_t side = blocks::read_size(*size, key, side_px);
      FOVEA_CHECK(side == side_px, kCorruptData, size->path(), ".", key, ": ", side,
                  " contradicts config.json, which says ", side_px);
    }
  }
  for (const char* key : {"do_resize", "do_rescale", "do_normalize"}) {
    FOVEA_CHECK(file.bool_or(key, true), kUnsupported, file.path(), ".", key,
                ": false is not supported");
  }
  constexpr std::int64_t kBilinear = 2;  // Pillow's number
  const std::int64_t resample = file.int_or("resample", kBilinear);
  FOVEA_CHECK(resample == kBilinear, kUnsupported, file.path(),
              ".resample: only 2 (bilinear) is supported, got ", resample);
}

}  // namespace

Processing read_processing(const checkpoint::HfConfig& files, const Config& config,
                           const MediaOptions& media) {
  constexpr std::int64_t kMostTiles = 1024;
  Processing p{.tile = config.view, .tokens_per_tile = config.tokens()};
  const auto file = files.image_processor();
  if (file) {
    check_file(*file, p.tile.side_px);
    p.max_patches = blocks::read_size(*file, "max_patches", p.max_patches, kMostTiles);
    p.resize_to_max_canvas = file->bool_or("resize_to_max_canvas", p.resize_to_max_canvas);
    p.image_mean = blocks::read_channels(*file, "image_mean", p.image_mean);
    p.image_std = blocks::read_positive_channels(*file, "image_std", p.image_std);
    p.rescale_factor = blocks::read_positive(*file, "rescale_factor", p.rescale_factor);
  }
  if (media.image_backend == ImageBackend::kPillow) p.engine = media::ResizeEngine::kPillow;
  const auto has = [&](const char* key) { return file && file->find(key); };
  p.assumptions = blocks::missing_text(
      files.directory + "/preprocessor_config.json", file.has_value(),
      {{has("max_patches"), "max_patches", cat("max_patches=", p.max_patches)},
       {has("image_mean"), "image_mean", cat("image_mean=", blocks::channel_text(p.image_mean))},
       {has("image_std"), "image_std", cat("image_std=", blocks::channel_text(p.image_std))}});
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
  FOVEA_CHECK(width_px >= 1 && height_px >= 1, kInvalidArgument, "image of ", width_px, "x",
              height_px, " pixels has no area");
  const Tiling canvas = choose_canvas(p_, width_px, height_px);
  const std::int64_t tiles = canvas.count() + (canvas.count() > 1 ? 1 : 0);
  ItemPlan plan;
  plan.source_width_px = width_px;
  plan.source_height_px = height_px;
  plan.resized_width_px = canvas.cols * p_.tile.side_px;
  plan.resized_height_px = canvas.rows * p_.tile.side_px;
  plan.grid = {1, canvas.rows, canvas.cols};
  plan.pixel_bytes = static_cast<std::size_t>(tiles) * p_.tile.pixel_bytes();
  plan.spec.input_rows = tiles * p_.tile.patches();
  plan.spec.num_seqs = 1;
  plan.spec.out_rows = tiles * p_.tokens_per_tile;
  plan.spec.path_tokens[0] = plan.spec.out_rows;
  return plan;
}

void Processor::fill_pixels(const ItemPlan& plan, std::span<const RgbView> frames,
                            std::span<std::uint8_t> out) const {
  const RgbView image = blocks::still_frame(plan, frames, out);
  const std::int64_t side = p_.tile.side_px;
  const Placement place = place_image(p_, image.width_px, image.height_px);
  const auto placed = resized(p_, image, place.width_px, place.height_px);
  std::vector<std::uint8_t> canvas(static_cast<std::size_t>(place.canvas.count()) *
                                   p_.tile.pixel_bytes());
  blocks::paste({placed.data(), place.width_px, place.height_px}, 0, 0, place.canvas.cols * side,
                canvas);
  blocks::cut_tiles(canvas, place.canvas, side, out.first(canvas.size()));
  if (place.canvas.count() > 1) {
    std::ranges::copy(resized(p_, image, side, side), out.subspan(canvas.size()).begin());
  }
}

}  // namespace fovea::llama4
