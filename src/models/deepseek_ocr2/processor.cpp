// The views of DeepSeek-OCR 2, as the vendor and as transformers make them.
#include "models/deepseek_ocr2/processor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/processor_file.h"

namespace fovea::deepseek_ocr2 {

namespace {

constexpr std::int64_t kMaxTiles = 256;

common::CanvasTiles default_views() {
  return {.canvas = common::sam_view(kBaseSide, kPatch),
          .tile = common::sam_view(kTileSide, kPatch),
          .tile_threshold_px = kTileSide};
}

void read_background(const JsonView& file, common::CanvasTiles& views) {
  const auto list = file.find("background_color");
  if (!list) return;
  const std::vector<JsonView> levels = common::elements_of(*list, 3);
  constexpr std::int64_t kMost = std::numeric_limits<std::uint8_t>::max();
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const std::int64_t level = levels[i].as_int();
    FOVEA_CHECK(level >= 0 && level <= kMost, kCorruptData, levels[i].path(),
                ": expected a byte, got ", level);
    views.background[i] = static_cast<std::uint8_t>(level);
  }
}

/// Where nothing is tiled, the whole image has the size of a tile.
void read_tiling(const JsonView& file, common::CanvasTiles& views) {
  common::check_size(file, kBaseSide);
  common::require_number(file, "tile_size", kTileSide);
  views.min_tiles = common::read_size(file, "min_patches", views.min_tiles, kMaxTiles);
  views.max_tiles = common::read_size(file, "max_patches", views.max_tiles, kMaxTiles);
  FOVEA_CHECK(views.min_tiles >= 2, kUnsupported, file.path(),
              ".min_patches: only 2 and more are supported, got ", views.min_tiles);
  FOVEA_CHECK(views.min_tiles <= views.max_tiles, kCorruptData, file.path(),
              ": expected min_patches <= max_patches, got ", views.min_tiles, " and ",
              views.max_tiles);
  if (file.bool_or("crop_to_patches", true)) return;
  views.max_tiles = 0;
  views.canvas = views.tile;
}

Processing read_vendor(const checkpoint::HfConfig& files) {
  const common::ToTensorScaling scaling = common::read_to_tensor_scaling(files);
  return {.views = default_views(),
          .table = scaling.table(),
          .assumptions = scaling.assumptions,
          .sources = scaling.sources};
}

Processing read_transformers(const checkpoint::HfConfig& files) {
  Processing p{.views = default_views()};
  p.views.fit = &scaled_fit;
  p.views.engine = media::ResizeEngine::kTorchvision;
  const std::optional<JsonView> file = files.image_processor();
  common::PixelScaling scaling;
  if (file) {
    scaling = common::read_scaling(*file, scaling);
    common::require_number(*file, "resample", 3);  // bicubic
    read_tiling(*file, p.views);
    read_background(*file, p.views);
  }
  p.table = scaling.table();
  p.assumptions = common::missing_text(
      files, {common::assumed(file, "image_mean", common::channel_text(scaling.image_mean)),
              common::assumed(file, "image_std", common::channel_text(scaling.image_std))});
  p.sources = common::sources_text(
      "image", file,
      common::sourced(file, {"image_mean", "image_std", "rescale_factor", "min_patches",
                             "max_patches", "crop_to_patches", "background_color"}));
  return p;
}

}  // namespace

common::CanvasRect scaled_fit(std::int64_t side, std::int64_t width_px, std::int64_t height_px) {
  const auto longer = static_cast<double>(std::max(width_px, height_px));
  const double scale = static_cast<double>(side) / longer;
  const auto scaled = [scale](std::int64_t length) {
    return static_cast<std::int64_t>(std::nearbyint(static_cast<double>(length) * scale));
  };
  common::CanvasRect rect{.width = scaled(width_px), .height = scaled(height_px)};
  rect.x = (side - rect.width) / 2;
  rect.y = (side - rect.height) / 2;
  return rect;
}

Processing read_processing(const checkpoint::HfConfig& files, Format format,
                           const MediaOptions& media) {
  Processing p = format == Format::kVendor ? read_vendor(files) : read_transformers(files);
  p.views.engine = common::resize_engine(media, p.views.engine);
  return p;
}

ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  ItemPlan plan = CanvasTilesProcessor::plan_image(width_px, height_px);
  ++plan.spec.out_rows;  // the separator
  return plan;
}

}  // namespace fovea::deepseek_ocr2
