// From images to tiles and a thumbnail.
#include "models/cohere_vision/processor.h"

#include <algorithm>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/frames.h"

namespace fovea::cohere_vision {

namespace {

constexpr std::int64_t kMaxTiles = 1024;  // far above the 12 of the reference

double ratio(std::int64_t a, std::int64_t b) {
  return static_cast<double>(a) / static_cast<double>(b);
}

}  // namespace

common::Tiling least_scaled_tiling(std::int64_t width_px, std::int64_t height_px,
                                   std::int64_t tile_side_px, std::int64_t max_tiles) {
  common::Tiling best;
  double best_scale = 0;
  for (std::int64_t count = 1; count <= max_tiles; ++count) {
    for (std::int64_t cols = 1; cols <= count; ++cols) {
      if (count % cols != 0) continue;
      const common::Tiling tiling{.cols = cols, .rows = count / cols};
      const double scale = std::min(ratio(tiling.cols * tile_side_px, width_px),
                                    ratio(tiling.rows * tile_side_px, height_px));
      const bool is_better = best_scale < 1 ? scale > best_scale : scale >= 1 && scale < best_scale;
      if (!is_better) continue;
      best = tiling;
      best_scale = scale;
    }
  }
  return best;
}

Processing read_processing(const checkpoint::HfConfig& files, const Config& config,
                           const MediaOptions& media) {
  Processing p{.format = config.format,
               .views = common::read_view_processing(
                   files, config.tower.view, media, {.scaling = common::kClipScaling},
                   {"crop_to_patches", "min_patches", "max_patches"})};
  const auto file = files.image_processor();
  if (!file) return p;
  p.min_tiles = common::read_size(*file, "min_patches", p.min_tiles, kMaxTiles);
  p.max_tiles = common::read_size(*file, "max_patches", p.max_tiles, kMaxTiles);
  FOVEA_CHECK(p.min_tiles <= p.max_tiles, kCorruptData, file->path(),
              ": expected min_patches <= max_patches, got ", p.min_tiles, " and ", p.max_tiles);
  // The processor of Aya Vision cuts images whatever the file says.
  const bool cuts = p.format == Format::kAya || file->bool_or("crop_to_patches", true);
  if (!cuts) p.min_tiles = p.max_tiles = 1;
  return p;
}

ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  common::check_area(width_px, height_px);
  const common::SquareView& view = processing().view;
  const common::Tiling tiling =
      format_ == Format::kAya
          ? common::nearest_tiling(width_px, height_px, view.side_px, min_tiles_, max_tiles_)
          : least_scaled_tiling(width_px, height_px, view.side_px, max_tiles_);
  const std::int64_t tiles = tiling.count();
  return common::plan_tiles(width_px, height_px, tiling, {view, tiles > 1 ? tiles + 1 : tiles});
}

}  // namespace fovea::cohere_vision
