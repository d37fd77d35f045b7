// Host side of LFM2-VL: images keep their aspect ratio in whole tokens; large ones are tiles and a
// thumbnail.
#include "models/lfm2_vl/processor.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/frames.h"
#include "models/common/grid/inputs.h"
#include "models/common/processor_file.h"
#include "models/common/views/tiles.h"

namespace fovea::lfm2_vl {

namespace {

using common::GridGeometry;
using common::Size2d;
using common::Tiling;

double as_double(std::int64_t value) { return static_cast<double>(value); }

/// The multiple of `factor` nearest to a side, half to even; at least `least`.
std::int64_t nearest(std::int64_t side, std::int64_t factor, std::int64_t least) {
  const double steps = std::nearbyint(as_double(side) / as_double(factor));
  return std::max(least, static_cast<std::int64_t>(steps) * factor);
}

/// The least and the most tokens of a view at its own size.
struct TokenRange {
  std::int64_t min_image_tokens = 64;
  std::int64_t max_image_tokens = 256;
};

void read_file(const JsonView& file, Processing& p, TokenRange& tokens) {
  const GridGeometry& g = p.grid.geometry;
  common::check_tower_size(file, "encoder_patch_size", g.patch_size);
  common::check_tower_size(file, "downsample_factor", g.spatial_merge_size);
  p.grid.scaling = common::read_scaling(file, p.grid.scaling);
  common::require_number(file, "resample", 2);  // bilinear
  p.do_image_splitting = file.bool_or("do_image_splitting", p.do_image_splitting);
  p.use_thumbnail = file.bool_or("use_thumbnail", p.use_thumbnail);
  p.max_pixels_tolerance =
      common::read_positive(file, "max_pixels_tolerance", p.max_pixels_tolerance);
  const auto read = [&](std::string_view key, std::int64_t& field) {
    field = common::read_size(file, key, field);
  };
  read("min_tiles", p.min_tiles);
  read("max_tiles", p.max_tiles);
  read("tile_size", p.tile_size);
  read("min_image_tokens", tokens.min_image_tokens);
  read("max_image_tokens", tokens.max_image_tokens);
  const auto check_order = [&](const char* key, std::int64_t least, std::int64_t most) {
    FOVEA_CHECK(least <= most, kCorruptData, file.path(), ": expected min_", key, " <= max_", key,
                ", got ", least, " and ", most);
  };
  check_order("tiles", p.min_tiles, p.max_tiles);
  check_order("image_tokens", tokens.min_image_tokens, tokens.max_image_tokens);
}

/// Size of an image as a view of its own.
Size2d whole_size(const Processing& p, std::int64_t height_px, std::int64_t width_px) {
  const std::int64_t factor = p.grid.geometry.resize_factor();
  const common::PixelRange range = p.grid.limits.image;
  const double pixels = as_double(height_px) * as_double(width_px);
  const Size2d rounded{nearest(height_px, factor, factor), nearest(width_px, factor, factor)};
  const std::int64_t area = rounded.height_px * rounded.width_px;
  if (area > range.max_pixels) {
    const double beta = std::sqrt(pixels / as_double(range.max_pixels));
    const auto shrunk = [&](std::int64_t side) {
      const double steps = std::floor(as_double(side) / beta / as_double(factor));
      return std::max(factor, static_cast<std::int64_t>(steps) * factor);
    };
    return {shrunk(height_px), shrunk(width_px)};
  }
  if (area < range.min_pixels) {
    const double beta = std::sqrt(as_double(range.min_pixels) / pixels);
    const auto grown = [&](std::int64_t side) {
      const double steps = std::ceil(as_double(side) * beta / as_double(factor));
      return static_cast<std::int64_t>(steps) * factor;
    };
    return {grown(height_px), grown(width_px)};
  }
  return rounded;
}

/// Whether it has too many pixels for that.
bool is_large(const Processing& p, std::int64_t height_px, std::int64_t width_px) {
  const GridGeometry& g = p.grid.geometry;
  const std::int64_t area = nearest(height_px, g.resize_factor(), g.patch_size) *
                            nearest(width_px, g.resize_factor(), g.patch_size);
  return as_double(area) > as_double(p.grid.limits.image.max_pixels) * p.max_pixels_tolerance;
}

std::vector<ItemPlan> views_of(const Processing& p, const ItemPlan& plan) {
  const GridGeometry& g = p.grid.geometry;
  const std::int64_t tiles = plan.grid[1] * plan.grid[2];
  if (tiles == 1) return {common::plan_view(g, {plan.resized_height_px, plan.resized_width_px})};
  std::vector<ItemPlan> views(static_cast<std::size_t>(tiles),
                              common::plan_view(g, {p.tile_size, p.tile_size}));
  if (p.use_thumbnail) {
    views.push_back(
        common::plan_view(g, whole_size(p, plan.source_height_px, plan.source_width_px)));
  }
  return views;
}

std::int64_t least_view_tokens(const Processing& p) {
  const std::int64_t factor = p.grid.geometry.resize_factor();
  const common::PixelRange range = p.grid.limits.image;
  // An image that is shrunk to the most tokens keeps a quarter of them: both sides are rounded down
  // to whole tokens, of which each keeps more than half.
  const std::int64_t pixels =
      std::min({range.min_pixels, range.max_pixels / 4, p.tile_size * p.tile_size});
  return std::max<std::int64_t>(1, pixels / (factor * factor));
}

}  // namespace

Processing read_processing(const checkpoint::HfConfig& files, const GridGeometry& geometry,
                           const MediaOptions& media) {
  Processing p{.grid = {.geometry = geometry,
                        .engine = common::resize_engine(media, media::ResizeEngine::kTorchvision),
                        .filter = media::ResizeFilter::kBilinear,
                        .has_grid_thw = false}};
  TokenRange tokens;
  const auto file = files.image_processor();
  if (file) read_file(*file, p, tokens);
  if (!p.do_image_splitting) p.min_tiles = p.max_tiles = 1;
  const std::int64_t factor = geometry.resize_factor();
  FOVEA_CHECK(p.tile_size % factor == 0, kUnsupported, file ? file->path() : files.directory,
              ".tile_size: ", p.tile_size, " is not a multiple of ", factor);
  p.grid.limits.image = {tokens.min_image_tokens * factor * factor,
                         tokens.max_image_tokens * factor * factor};
  p.grid.assumptions = common::missing_text(
      files, {common::assumed(file, "min_image_tokens", cat(tokens.min_image_tokens)),
              common::assumed(file, "max_image_tokens", cat(tokens.max_image_tokens)),
              common::assumed(file, "max_tiles", cat(p.max_tiles)),
              common::assumed(file, "tile_size", cat(p.tile_size)),
              common::assumed(file, "image_mean", common::channel_text(p.grid.scaling.image_mean)),
              common::assumed(file, "image_std", common::channel_text(p.grid.scaling.image_std))});
  p.grid.sources = common::sources_text(
      "image", file,
      common::sourced(file, {"min_image_tokens", "max_image_tokens", "do_image_splitting",
                             "min_tiles", "max_tiles", "tile_size", "use_thumbnail",
                             "max_pixels_tolerance", "image_mean", "image_std"}));
  p.grid.least_view_tokens = least_view_tokens(p);
  p.grid.views_of = [p](const ItemPlan& plan) { return views_of(p, plan); };
  return p;
}

ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  common::check_area(width_px, height_px);
  const Size2d whole = whole_size(p_, height_px, width_px);
  const bool is_split = p_.max_tiles > 1 && is_large(p_, height_px, width_px);
  const Tiling tiling = is_split ? common::nearest_tiling(width_px, height_px, p_.tile_size,
                                                          p_.min_tiles, p_.max_tiles)
                                 : Tiling{};
  const Size2d resized =
      is_split ? Size2d{tiling.rows * p_.tile_size, tiling.cols * p_.tile_size} : whole;
  ItemPlan plan;
  plan.source_width_px = width_px;
  plan.source_height_px = height_px;
  plan.resized_width_px = resized.width_px;
  plan.resized_height_px = resized.height_px;
  plan.target_width_px = std::max(resized.width_px, whole.width_px);
  plan.target_height_px = std::max(resized.height_px, whole.height_px);
  plan.grid = {1, tiling.rows, tiling.cols};
  common::count_views(p_.grid.geometry, views_of(p_, plan), plan);
  return plan;
}

void Processor::fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                           std::span<std::uint8_t> out) const {
  common::check_frame(plan, index, frame, out);
  const common::GridProcessing& grid = p_.grid;
  const Tiling tiling{.cols = plan.grid[2], .rows = plan.grid[1]};
  if (tiling.count() == 1) {
    common::resize(frame, plan.resized_width_px, plan.resized_height_px, grid.engine, grid.filter,
                   out);
    return;
  }
  const media::Image canvas = common::resized(frame, plan.resized_width_px, plan.resized_height_px,
                                              grid.engine, grid.filter);
  common::cut_tiles(common::view_of(canvas), tiling, p_.tile_size, out.first(canvas.rgb.size()));
  if (out.size() == canvas.rgb.size()) return;
  const Size2d whole = whole_size(p_, plan.source_height_px, plan.source_width_px);
  common::resize(frame, whole.width_px, whole.height_px, grid.engine, grid.filter,
                 out.subspan(canvas.rgb.size()));
}

}  // namespace fovea::lfm2_vl
