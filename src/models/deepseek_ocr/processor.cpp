// From an image to its global view and its tiles. Divisions are done in double and rounded half to
// even, as the vendor's code does.
#include "models/deepseek_ocr/processor.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "models/common/frames.h"
#include "models/common/processor_file.h"
#include "models/common/views/tiles.h"

namespace fovea::deepseek_ocr {

namespace {

constexpr std::uint8_t kCanvasGrey = 127;  // int(0.5 * 255)

/// numerator / denominator * factor, rounded half to even.
std::int64_t scaled(std::int64_t factor, std::int64_t numerator, std::int64_t denominator) {
  const double ratio = static_cast<double>(numerator) / static_cast<double>(denominator);
  return static_cast<std::int64_t>(std::nearbyint(ratio * static_cast<double>(factor)));
}

struct Rect {
  std::int64_t x = 0, y = 0, width = 0, height = 0;
};

/// Where the image lies on the global view's canvas.
Rect fit_on_canvas(std::int64_t side, std::int64_t width_px, std::int64_t height_px) {
  Rect rect{0, 0, side, side};
  if (width_px > height_px) {
    rect.height = scaled(side, height_px, width_px);
  } else if (height_px > width_px) {
    rect.width = scaled(side, width_px, height_px);
  }
  rect.x = scaled(side - rect.width, 1, 2);
  rect.y = scaled(side - rect.height, 1, 2);
  return rect;
}

}  // namespace

Processing read_processing(const checkpoint::HfConfig& files, const MediaOptions& media) {
  Processing p;
  p.engine = common::resize_engine(media, p.engine);
  std::optional<JsonView> file;
  if (files.processor) {
    file = files.processor->root();
    p.image_mean = common::read_channels(*file, "image_mean", p.image_mean);
    p.image_std = common::read_positive_channels(*file, "image_std", p.image_std);
  }
  p.assumptions =
      common::missing_text(files.directory + "/processor_config.json", file.has_value(),
                           {common::assumed(file, "image_mean", common::channel_text(p.image_mean)),
                            common::assumed(file, "image_std", common::channel_text(p.image_std))});
  p.sources =
      common::sources_text("image", file, common::sourced(file, {"image_mean", "image_std"}));
  return p;
}

std::optional<common::Tiling> tiling_of(const ItemPlan& plan) {
  const common::Tiling tiling{.cols = plan.grid[2], .rows = plan.grid[1]};
  return tiling.count() > 1 ? std::optional(tiling) : std::nullopt;
}

common::Tiling Processor::choose_tiling(std::int64_t width_px, std::int64_t height_px) const {
  if (std::max(width_px, height_px) <= p_.tile_threshold_px) return {};
  return common::nearest_tiling(width_px, height_px, p_.views[kLocal].side_px, p_.min_tiles,
                                p_.max_tiles);
}

ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  const common::SquareView& base = p_.views[kGlobal];
  const common::SquareView& tile = p_.views[kLocal];
  common::check_area(width_px, height_px);
  const Rect rect = fit_on_canvas(base.side_px, width_px, height_px);
  FOVEA_CHECK(rect.width >= 1 && rect.height >= 1, kInvalidArgument, "image of ", width_px, "x",
              height_px, " pixels is too thin: fitted into ", base.side_px, "x", base.side_px,
              " it would be ", rect.width, "x", rect.height);
  const common::Tiling tiling = choose_tiling(width_px, height_px);
  const std::int64_t tiles = tiling.count() > 1 ? tiling.count() : 0;

  ItemPlan plan = common::plan_views(width_px, height_px, tiling, {{base, 1}, {tile, tiles}});
  plan.resized_width_px = tiles > 0 ? tiling.cols * tile.side_px : base.side_px;
  plan.resized_height_px = tiles > 0 ? tiling.rows * tile.side_px : base.side_px;
  plan.target_width_px = std::max(rect.width, tiles > 0 ? plan.resized_width_px : 0);
  plan.target_height_px = std::max(rect.height, tiles > 0 ? plan.resized_height_px : 0);
  const std::int64_t newlines = tiles > 0 ? tiling.rows * tile.tokens_side() : 0;
  plan.spec.path_tokens[kGlobal] += base.tokens_side();  // newlines, which its path adds
  plan.spec.units[kGlobal].rows += base.tokens_side();
  plan.spec.out_rows += base.tokens_side() + newlines + 1;
  return plan;
}

void Processor::fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& image,
                           std::span<std::uint8_t> out) const {
  common::check_frame(plan, index, image, out);
  const std::size_t global_bytes = p_.views[kGlobal].pixel_bytes();
  fill_global(plan, image, out.first(global_bytes));
  if (const auto tiling = tiling_of(plan)) {
    const media::Image canvas =
        common::resized(image, plan.resized_width_px, plan.resized_height_px, p_.engine);
    common::cut_tiles(common::view_of(canvas), *tiling, p_.views[kLocal].side_px,
                      out.subspan(global_bytes));
  }
}

void Processor::fill_global(const ItemPlan& plan, RgbView image,
                            std::span<std::uint8_t> out) const {
  const std::int64_t side = p_.views[kGlobal].side_px;
  const Rect rect = fit_on_canvas(side, plan.source_width_px, plan.source_height_px);
  const media::Image fitted = common::resized(image, rect.width, rect.height, p_.engine);
  std::ranges::fill(out, kCanvasGrey);
  common::paste(common::view_of(fitted), rect.x, rect.y, side, out);
}

}  // namespace fovea::deepseek_ocr
