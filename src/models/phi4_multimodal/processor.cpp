// From an image to a canvas of views and a global view of that canvas.
#include "models/phi4_multimodal/processor.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/frames.h"
#include "models/common/views/tiles.h"

namespace fovea::phi4_multimodal {

namespace {

constexpr std::int64_t kMaxViews = 1024;  // far above the 36 of published checkpoints
constexpr std::int64_t kLeastSide = 10;   // pixels of a resized image
constexpr std::uint8_t kWhite = 255;

double as_double(std::int64_t value) { return static_cast<double>(value); }

/// Resizes an image to levels, or keeps its size.
void fill_levels(const media::Image& image, std::int64_t width_px, std::int64_t height_px,
                 std::span<std::uint8_t> out) {
  common::resize_fine(common::view_of(image), width_px, height_px, media::FineFilter::kPlainBicubic,
                      out);
}

/// The plan of an image as far as its size on a canvas, which it fills along one axis.
ItemPlan plan_on_canvas(std::int64_t width_px, std::int64_t height_px,
                        const common::SquareView& view, std::int64_t most_views) {
  common::check_area(width_px, height_px);
  const std::int64_t side = view.side_px;
  common::Tiling canvas{.cols = (width_px + side - 1) / side,
                        .rows = (height_px + side - 1) / side};
  if (std::max(canvas.cols, canvas.rows) > most_views || canvas.count() > most_views) {
    canvas = common::nearest_tiling(width_px, height_px, side, 1, most_views);
  }
  ItemPlan plan = common::plan_tiles(width_px, height_px, canvas, {view});
  const double across = as_double(plan.resized_width_px) / as_double(width_px);
  const double down = as_double(plan.resized_height_px) / as_double(height_px);
  std::int64_t& shorter = across < down ? plan.resized_height_px : plan.resized_width_px;
  shorter = across < down ? static_cast<std::int64_t>(as_double(height_px) * across)
                          : static_cast<std::int64_t>(as_double(width_px) * down);
  FOVEA_CHECK(shorter >= kLeastSide, kInvalidArgument, "image of ", width_px, "x", height_px,
              " pixels is too thin: resized it would be ", plan.resized_width_px, "x",
              plan.resized_height_px, ", and ", kLeastSide, " is the least");
  plan.target_width_px = plan.resized_width_px;
  plan.target_height_px = plan.resized_height_px;
  return plan;
}

}  // namespace

Processing read_processing(const checkpoint::HfConfig& files, const Config& config,
                           const MediaOptions& media) {
  Processing p{
      .views = common::read_view_processing(files, config.tower.view, media, {}, {"dynamic_hd"})};
  p.views.filter = media::ResizeFilter::kBilinear;
  if (config.format == Format::kVendor) {
    p.views.engine = common::resize_engine(media, media::ResizeEngine::kPillow);
  }
  const auto file = files.image_processor();
  if (file) {
    common::require_number(*file, "patch_size", as_double(config.tower.view.patch_px));
    p.dynamic_hd = common::read_size(*file, "dynamic_hd", p.dynamic_hd, kMaxViews);
  }
  p.views.assumptions =
      common::missing_text(files, {common::assumed(file, "dynamic_hd", cat(p.dynamic_hd))});
  return p;
}

Processor::Processor(Processing processing)
    : ViewProcessor(std::move(processing.views)),
      dynamic_hd_(processing.dynamic_hd),
      white_patch_(view().pixel_bytes() / static_cast<std::size_t>(view().patches())) {
  const std::int64_t side = view().patch_px;
  fill_levels(common::on_canvas({}, 0, 0, side, side, kWhite), side, side, white_patch_);
}

std::vector<View> Processor::views_of(const ItemPlan& plan) const {
  const auto patches = [this](std::int64_t views, std::int64_t image_px) {
    const std::int64_t side_px = views * view().side_px;
    return side_px / view().patch_px - (side_px - image_px) / view().patch_px;
  };
  const std::int64_t rows = patches(plan.grid[1], plan.resized_height_px);
  const std::int64_t cols = patches(plan.grid[2], plan.resized_width_px);
  const std::int64_t grid = view().grid();
  std::vector<View> views{{.rows = grid, .cols = grid}};
  for (std::int64_t y = 0; y < rows; y += grid) {
    for (std::int64_t x = 0; x < cols; x += grid) {
      views.push_back({y, x, std::min(grid, rows - y), std::min(grid, cols - x)});
    }
  }
  return views;
}

ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  ItemPlan plan = plan_on_canvas(width_px, height_px, view(), dynamic_hd_);
  const std::vector<View> views = views_of(plan);
  std::int64_t patches = 0;
  std::int64_t rows = 1;  // the separator between, then tokens with one behind each of their rows
  for (const View& part : views) patches += part.patches();
  for (const View& last : {views.front(), views.back()}) {
    rows += (last.y + last.rows + 1) / 2 * ((last.x + last.cols + 1) / 2 + 1);
  }
  plan.pixel_bytes = static_cast<std::size_t>(patches) * white_patch_.size();
  plan.spec.input_rows = patches + std::ranges::count_if(views, &View::is_padded);
  common::set_units(1, rows, plan);
  return plan;
}

void Processor::fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                           std::span<std::uint8_t> out) const {
  common::check_frame(plan, index, frame, out);
  const std::int64_t side = view().side_px;
  const std::int64_t patch = view().patch_px;
  const media::Image image = common::resized(frame, plan.resized_width_px, plan.resized_height_px,
                                             processing().engine, processing().filter);
  const media::Image canvas = common::on_canvas(common::view_of(image), 0, 0, plan.grid[2] * side,
                                                plan.grid[1] * side, kWhite);
  fill_levels(canvas, side, side, out.first(view().pixel_bytes()));
  out = out.subspan(view().pixel_bytes());
  const std::vector<View> views = views_of(plan);
  for (const View& part : std::span(views).subspan(1)) {
    const std::size_t bytes = static_cast<std::size_t>(part.patches()) * white_patch_.size();
    const media::Image shown = common::cut(common::view_of(canvas), part.x * patch, part.y * patch,
                                           {part.rows * patch, part.cols * patch});
    fill_levels(shown, shown.width_px, shown.height_px, out.first(bytes));
    out = out.subspan(bytes);
  }
}

}  // namespace fovea::phi4_multimodal
