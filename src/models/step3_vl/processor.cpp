// From an image to its views: the whole image, and windows of large ones.
#include "models/step3_vl/processor.h"

#include "models/common/frames.h"
#include "models/common/views/tiles.h"

namespace fovea::step3_vl {

namespace {

media::Image resized(RgbView image, std::int64_t width_px, std::int64_t height_px) {
  return common::resized(image, width_px, height_px, media::ResizeEngine::kPillow,
                         media::ResizeFilter::kBilinear);
}

void fill_view(RgbView image, const common::SquareView& view, std::span<std::uint8_t> out) {
  common::resize_fine(image, view.side_px, view.side_px, media::FineFilter::kBilinear, out);
}

void fill_windows(RgbView image, const Crop& crop, std::span<std::uint8_t> out) {
  const media::Image source = resized(image, crop.crop_width_px, crop.crop_height_px);
  const std::int64_t side = crop.window_px;
  const std::size_t view_bytes = kViews[kLocal].pixel_bytes();
  for (std::int64_t i = 0; i < crop.windows.count(); ++i, out = out.subspan(view_bytes)) {
    const media::Image window = common::cut(common::view_of(source), i % crop.windows.cols * side,
                                            i / crop.windows.cols * side, {side, side});
    fill_view(common::view_of(window), kViews[kLocal], out.first(view_bytes));
  }
}

}  // namespace

ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  const common::SquareView& whole = kViews[kGlobal];
  const Crop crop = plan_crop(width_px, height_px, windows_);
  ItemPlan plan = common::plan_views(width_px, height_px, crop.windows,
                                     {{whole, 1}, {kViews[kLocal], crop.windows.count()}});
  plan.resized_width_px = crop.window_px > 0 ? crop.crop_width_px : whole.side_px;
  plan.resized_height_px = crop.window_px > 0 ? crop.crop_height_px : whole.side_px;
  if (crop.square_px == 0) {  // all views are made of the image at this size
    plan.target_width_px = crop.width_px;
    plan.target_height_px = crop.height_px;
  }
  return plan;
}

void Processor::fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                           std::span<std::uint8_t> out) const {
  common::check_frame(plan, index, frame, out);
  RgbView image = frame;
  const Crop crop = plan_crop(plan.source_width_px, plan.source_height_px, windows_);
  media::Image changed;
  if (crop.square_px > 0) {
    changed = common::cut(image, 0, 0, {crop.square_px, crop.square_px});
    image = common::view_of(changed);
  }
  if (image.width_px != crop.width_px || image.height_px != crop.height_px) {
    changed = resized(image, crop.width_px, crop.height_px);
    image = common::view_of(changed);
  }
  const std::size_t whole_bytes = kViews[kGlobal].pixel_bytes();
  fill_view(image, kViews[kGlobal], out.first(whole_bytes));
  if (crop.window_px > 0) fill_windows(image, crop, out.subspan(whole_bytes));
}

}  // namespace fovea::step3_vl
