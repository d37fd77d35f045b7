// From an image to a canvas of views and a global view of that canvas.
#include "models/phi4_multimodal/processor.h"

#include <algorithm>
#include <limits>

#include "core/check.h"
#include "media/resize/resize_fine.h"
#include "models/common/config_reader.h"
#include "models/common/frames.h"

namespace fovea::phi4_multimodal {

namespace {

constexpr std::int64_t kMaxViews = 1024;  // far above the 36 of published checkpoints
constexpr std::int64_t kLeastSide = 10;   // pixels of a resized image

double as_double(std::int64_t value) { return static_cast<double>(value); }

media::Image white(std::int64_t width_px, std::int64_t height_px) {
  constexpr std::uint8_t kWhite = 255;
  return {width_px, height_px,
          std::vector<std::uint8_t>(static_cast<std::size_t>(width_px * height_px * 3), kWhite)};
}

common::Tiling choose_canvas(std::int64_t width_px, std::int64_t height_px, std::int64_t side,
                             std::int64_t most_views) {
  common::check_area(width_px, height_px);
  const common::Tiling whole{.cols = (width_px + side - 1) / side,
                             .rows = (height_px + side - 1) / side};
  const bool fits = std::max(whole.cols, whole.rows) <= most_views && whole.count() <= most_views;
  return fits ? whole : common::nearest_tiling(width_px, height_px, side, 1, most_views);
}

/// The plan of an image as far as its size on a canvas, which it fills along one axis.
ItemPlan plan_on_canvas(std::int64_t width_px, std::int64_t height_px, common::Tiling canvas,
                        const common::SquareView& view) {
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
  p.views.assumptions = common::missing_text(
      file ? file->path() : files.directory + "/preprocessor_config.json", file.has_value(),
      {common::assumed(file, "dynamic_hd", cat(p.dynamic_hd))});
  return p;
}

common::Tiling Processor::patches_of(const ItemPlan& plan) const {
  const auto patches = [this](std::int64_t views, std::int64_t image_px) {
    const std::int64_t side_px = views * view().side_px;
    return side_px / view().patch_px - (side_px - image_px) / view().patch_px;
  };
  return {.cols = patches(plan.grid[2], plan.resized_width_px),
          .rows = patches(plan.grid[1], plan.resized_height_px)};
}

std::vector<View> Processor::views_of(const ItemPlan& plan) const {
  const common::Tiling patches = patches_of(plan);
  const std::int64_t grid = view().grid();
  std::vector<View> views{{.rows = grid, .cols = grid}};
  for (std::int64_t y = 0; y < patches.rows; y += grid) {
    for (std::int64_t x = 0; x < patches.cols; x += grid) {
      views.push_back({y, x, std::min(grid, patches.rows - y), std::min(grid, patches.cols - x)});
    }
  }
  return views;
}

ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  const common::Tiling canvas = choose_canvas(width_px, height_px, view().side_px, dynamic_hd_);
  ItemPlan plan = plan_on_canvas(width_px, height_px, canvas, view());
  const std::vector<View> views = views_of(plan);
  const std::int64_t padded = std::ranges::count_if(views, &View::is_padded);
  std::int64_t patches = 0;
  for (const View& part : views) patches += part.patches();
  const std::int64_t kept = patches + std::min<std::int64_t>(padded, 1);  // with a white one
  const auto patch_bytes = static_cast<std::int64_t>(view().pixel_bytes()) / view().patches();
  FOVEA_CHECK(kept <= std::numeric_limits<std::int32_t>::max() / patch_bytes, kInvalidArgument,
              "image of ", width_px, "x", height_px, ": more pixels than one item can have");
  const common::Tiling shown = patches_of(plan);
  const std::int64_t side = view().tokens_side();
  const std::int64_t rows = (shown.rows + 1) / 2;  // of tokens, behind each of which is a separator
  plan.pixel_bytes = static_cast<std::size_t>(kept * patch_bytes);
  plan.unit_bytes[0] = plan.pixel_bytes;
  plan.spec.input_rows = patches + padded;
  plan.spec.out_rows = rows * ((shown.cols + 1) / 2 + 1) + 1 + side * (side + 1);
  plan.spec.path_tokens[0] = plan.spec.out_rows;
  plan.spec.units[0] = {1, plan.spec.input_rows, plan.spec.out_rows};
  return plan;
}

void Processor::fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                           std::span<std::uint8_t> out) const {
  common::check_frame(plan, index, frame, out);
  const std::int64_t side = view().side_px;
  const std::int64_t patch = view().patch_px;
  const auto fill = [&out](const media::Image& image, std::int64_t width, std::int64_t height) {
    const auto bytes = static_cast<std::size_t>(width * height * 3) * media::kLevelBytes;
    common::resize_fine(common::view_of(image), width, height, media::FineFilter::kPlainBicubic,
                        out.first(bytes));
    out = out.subspan(bytes);
  };
  media::Image canvas = white(plan.grid[2] * side, plan.grid[1] * side);
  const media::Image image = common::resized(frame, plan.resized_width_px, plan.resized_height_px,
                                             processing().engine, processing().filter);
  common::paste(common::view_of(image), 0, 0, canvas.width_px, canvas.rgb);
  const std::vector<View> views = views_of(plan);
  if (std::ranges::any_of(views, &View::is_padded)) fill(white(patch, patch), patch, patch);
  fill(canvas, side, side);
  for (const View& part : std::span(views).subspan(1)) {
    const media::Image shown = common::cut(common::view_of(canvas), part.x * patch, part.y * patch,
                                           {part.rows * patch, part.cols * patch});
    fill(shown, shown.width_px, shown.height_px);
  }
}

}  // namespace fovea::phi4_multimodal
