// From images to the whole image and its crops.
#include "models/gemma3/processor.h"

#include <algorithm>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/frames.h"

namespace fovea::gemma3 {

namespace {

constexpr std::int64_t kMaxCrops = 1024;  // far above the 4 of the reference

PanAndScan read_pan_and_scan(const JsonView& file) {
  PanAndScan rule;
  rule.is_on = file.bool_or("do_pan_and_scan", rule.is_on);
  rule.min_crop_px = common::read_size(file, "pan_and_scan_min_crop_size", rule.min_crop_px);
  rule.max_crops = common::read_size(file, "pan_and_scan_max_num_crops", rule.max_crops, kMaxCrops);
  rule.min_ratio =
      common::read_positive(file, "pan_and_scan_min_ratio_to_activate", rule.min_ratio);
  return rule;
}

/// The part of an image from (left, top) on, of at most this size.
media::Image cut(const RgbView& image, std::int64_t left_px, std::int64_t top_px,
                 std::int64_t width_px, std::int64_t height_px) {
  media::Image part{std::min(width_px, image.width_px - left_px),
                    std::min(height_px, image.height_px - top_px),
                    {}};
  part.rgb.reserve(static_cast<std::size_t>(part.width_px * part.height_px * 3));
  for (std::int64_t y = top_px; y < top_px + part.height_px; ++y) {
    const std::uint8_t* const row = image.rgb + (y * image.width_px + left_px) * 3;
    part.rgb.insert(part.rgb.end(), row, row + part.width_px * 3);
  }
  return part;
}

}  // namespace

Crops plan_crops(std::int64_t width_px, std::int64_t height_px, const PanAndScan& rule) {
  common::check_area(width_px, height_px);
  const auto [shorter, longer] = std::minmax({width_px, height_px});
  const double ratio = static_cast<double>(longer) / static_cast<double>(shorter);
  if (!rule.is_on || ratio < rule.min_ratio) return {};
  const std::int64_t nearest = (2 * longer + shorter) / (2 * shorter);  // to the ratio, halves up
  const std::int64_t count = std::min(
      std::max<std::int64_t>(2, std::min(longer / rule.min_crop_px, nearest)), rule.max_crops);
  const std::int64_t length = (longer + count - 1) / count;
  if (std::min(length, shorter) < rule.min_crop_px) return {};
  FOVEA_CHECK((count - 1) * length < longer, kInvalidArgument, "image of ", width_px, "x",
              height_px, " pixels is too small for ", count, " crops of ", length, " pixels");
  if (width_px >= height_px) return {{.cols = count, .rows = 1}, length, height_px};
  return {{.cols = 1, .rows = count}, width_px, length};
}

Processing read_processing(const checkpoint::HfConfig& files, const Config& config,
                           const MediaOptions& media) {
  Processing p{.views = common::read_view_processing(
                   files, config.tower.view, media, {.filter = media::ResizeFilter::kBilinear},
                   {"do_pan_and_scan", "pan_and_scan_min_crop_size", "pan_and_scan_max_num_crops",
                    "pan_and_scan_min_ratio_to_activate"}),
               .pan_and_scan = {}};
  if (const auto file = files.image_processor()) p.pan_and_scan = read_pan_and_scan(*file);
  return p;
}

ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  const common::SquareView& view = processing().view;
  const Crops crops = plan_crops(width_px, height_px, pan_and_scan_);
  ItemPlan plan =
      common::plan_views(width_px, height_px, crops.tiling, {{view, 1 + crops.tiling.count()}});
  plan.resized_width_px = plan.resized_height_px = view.side_px;
  // Crops begin at whole pixels of the full size.
  if (crops.tiling.count() == 0) plan.target_width_px = plan.target_height_px = view.side_px;
  return plan;
}

void Processor::fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                           std::span<std::uint8_t> out) const {
  common::check_frame(plan, index, frame, out);
  const std::size_t view_bytes = processing().view.pixel_bytes();
  fill_view(frame, out.first(view_bytes));
  const Crops crops = plan_crops(plan.source_width_px, plan.source_height_px, pan_and_scan_);
  for (std::int64_t y = 0; y < crops.tiling.rows; ++y) {
    for (std::int64_t x = 0; x < crops.tiling.cols; ++x) {
      out = out.subspan(view_bytes);
      const media::Image crop =
          cut(frame, x * crops.width_px, y * crops.height_px, crops.width_px, crops.height_px);
      fill_view(common::view_of(crop), out.first(view_bytes));
    }
  }
}

}  // namespace fovea::gemma3
