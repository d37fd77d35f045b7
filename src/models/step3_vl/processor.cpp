// From an image to its views: the whole image, and windows of large ones.
#include "models/step3_vl/processor.h"

#include <algorithm>
#include <vector>

#include "models/blocks/tiles.h"
#include "models/step3_vl/crop.h"

namespace fovea::step3_vl {

namespace {

/// An image with its own memory.
struct Pixels {
  std::int64_t width_px;
  std::int64_t height_px;
  std::vector<std::uint8_t> rgb =
      std::vector<std::uint8_t>(static_cast<std::size_t>(width_px * height_px * 3));

  [[nodiscard]] RgbView view() const { return {rgb.data(), width_px, height_px}; }
};

/// The part of an image from (x, y) on that fits a canvas; what it does not cover is black.
Pixels cut(RgbView image, std::int64_t x, std::int64_t y, std::int64_t width_px,
           std::int64_t height_px) {
  Pixels part{width_px, height_px};
  const std::int64_t cols = std::min(width_px, image.width_px - x);
  const std::int64_t rows = std::min(height_px, image.height_px - y);
  for (std::int64_t row = 0; row < rows; ++row) {
    std::copy_n(image.rgb + ((y + row) * image.width_px + x) * 3, cols * 3,
                part.rgb.begin() + row * width_px * 3);
  }
  return part;
}

Pixels resized(RgbView image, std::int64_t width_px, std::int64_t height_px) {
  return {width_px, height_px,
          blocks::resized(image, width_px, height_px, media::ResizeEngine::kPillow,
                          media::ResizeFilter::kBilinear)};
}

void fill_view(RgbView image, const View& view, std::span<std::uint8_t> out) {
  media::resize_rgb_fine(
      {.src = {image.rgb, static_cast<std::size_t>(image.width_px * image.height_px * 3)},
       .src_width_px = image.width_px,
       .src_height_px = image.height_px,
       .dst = out,
       .dst_width_px = view.side_px,
       .dst_height_px = view.side_px});
}

void fill_windows(RgbView image, const Crop& crop, std::span<std::uint8_t> out) {
  const Pixels source = resized(image, crop.crop_width_px, crop.crop_height_px);
  const std::int64_t side = crop.window_px;
  const std::size_t view_bytes = kViews[kLocal].pixel_bytes();
  for (std::int64_t i = 0; i < crop.windows(); ++i, out = out.subspan(view_bytes)) {
    const Pixels window =
        cut(source.view(), i % crop.cols * side, i / crop.cols * side, side, side);
    fill_view(window.view(), kViews[kLocal], out.first(view_bytes));
  }
}

}  // namespace

ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  const View& whole = kViews[kGlobal];
  const View& window = kViews[kLocal];
  const Crop crop = plan_crop(width_px, height_px, windows_);
  ItemPlan plan;
  plan.source_width_px = width_px;
  plan.source_height_px = height_px;
  plan.resized_width_px = crop.window_px > 0 ? crop.crop_width_px : whole.side_px;
  plan.resized_height_px = crop.window_px > 0 ? crop.crop_height_px : whole.side_px;
  plan.grid = {1, crop.rows, crop.cols};
  plan.pixel_bytes =
      whole.pixel_bytes() + static_cast<std::size_t>(crop.windows()) * window.pixel_bytes();
  plan.spec.input_rows = whole.patches() + crop.windows() * window.patches();
  plan.spec.num_seqs = 1;
  plan.spec.path_tokens[kGlobal] = whole.tokens();
  plan.spec.path_tokens[kLocal] = crop.windows() * window.tokens();
  plan.spec.out_rows = plan.spec.path_tokens[kGlobal] + plan.spec.path_tokens[kLocal];
  return plan;
}

void Processor::fill_pixels(const ItemPlan& plan, std::span<const RgbView> frames,
                            std::span<std::uint8_t> out) const {
  RgbView image = blocks::still_frame(plan, frames, out);
  const Crop crop = plan_crop(image.width_px, image.height_px, windows_);
  Pixels changed{0, 0};
  if (crop.square_px > 0) {
    changed = cut(image, 0, 0, crop.square_px, crop.square_px);
    image = changed.view();
  }
  if (image.width_px != crop.width_px || image.height_px != crop.height_px) {
    changed = resized(image, crop.width_px, crop.height_px);
    image = changed.view();
  }
  const std::size_t whole_bytes = kViews[kGlobal].pixel_bytes();
  fill_view(image, kViews[kGlobal], out.first(whole_bytes));
  if (crop.window_px > 0) fill_windows(image, crop, out.subspan(whole_bytes));
}

}  // namespace fovea::step3_vl
