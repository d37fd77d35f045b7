// From an image to its views: the whole image, and windows of large ones.
#include "models/step3p7/processor.h"

#include <algorithm>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/frames.h"

namespace fovea::step3p7 {

namespace {

constexpr media::ResizeFilter kFilter = media::ResizeFilter::kBilinear;

/// The part of an image from (left, top) on, at most one window, which ends where the image does.
media::Image cut(const RgbView& image, std::int64_t left_px, std::int64_t top_px,
                 std::int64_t window_px) {
  media::Image part{std::min(window_px, image.width_px - left_px),
                    std::min(window_px, image.height_px - top_px),
                    {}};
  part.rgb.resize(static_cast<std::size_t>(part.width_px * part.height_px * 3));
  for (std::int64_t y = 0; y < part.height_px; ++y) {
    std::copy_n(image.rgb + ((top_px + y) * image.width_px + left_px) * 3, part.width_px * 3,
                part.rgb.begin() + y * part.width_px * 3);
  }
  return part;
}

}  // namespace

Processing read_processing(const checkpoint::HfConfig& files, const Config& config,
                           const MediaOptions& media) {
  Processing p{.rule = {},
               .views = {config.view, config.view},
               .engine = common::resize_engine(media, media::ResizeEngine::kTorchvision),
               .assumptions = {},
               .sources = {}};
  const auto file = files.image_processor();
  if (file) {
    p.scaling = common::read_scaling(*file, p.scaling);
    common::check_size(*file, config.view.side_px);
    common::require_number(*file, "resample", 2);
    p.rule.window_px = common::read_size(*file, "patch_size", p.rule.window_px);
    p.rule.most_side_px = common::read_size(*file, "max_image_size", p.rule.most_side_px);
  }
  p.rule.most_small_px = config.view.side_px;
  p.views[kLocal].side_px = p.rule.window_px;
  check_view(p.views[kLocal], (file ? file->path() : files.directory) + ".patch_size");
  const std::string name = file ? file->path() : files.directory + "/preprocessor_config.json";
  p.assumptions = common::missing_text(
      name, file.has_value(),
      {common::assumed(file, "patch_size", cat(p.rule.window_px)),
       common::assumed(file, "image_mean", common::channel_text(p.scaling.image_mean)),
       common::assumed(file, "image_std", common::channel_text(p.scaling.image_std))});
  p.sources = common::sources_text(
      "image", file,
      common::sourced(file, {"patch_size", "max_image_size", "image_mean", "image_std"}));
  return p;
}

ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  const common::Crop crop = common::plan_crop(p_.rule, width_px, height_px, true);
  const bool has_windows = crop.window_px > 0;
  const std::int64_t side = p_.views[kGlobal].side_px;
  ItemPlan plan =
      common::plan_views(width_px, height_px, crop.windows,
                         {{p_.views[kGlobal], 1}, {p_.views[kLocal], crop.windows.count()}});
  plan.resized_width_px = has_windows ? crop.crop_width_px : side;
  plan.resized_height_px = has_windows ? crop.crop_height_px : side;
  if (crop.square_px == 0) {  // the whole image and its windows are resized from the image
    plan.target_width_px = std::max(crop.width_px, crop.crop_width_px);
    plan.target_height_px = std::max(crop.height_px, crop.crop_height_px);
  }
  return plan;
}

void Processor::fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                           std::span<std::uint8_t> out) const {
  common::check_frame(plan, index, frame, out);
  const common::Crop crop =
      common::plan_crop(p_.rule, plan.source_width_px, plan.source_height_px, true);
  RgbView image = frame;
  media::Image square{crop.square_px, crop.square_px, {}};
  if (crop.square_px > 0) {
    square.rgb.resize(static_cast<std::size_t>(crop.square_px * crop.square_px * 3));
    common::cut_square(frame, 0, 0, crop.square_px, square.rgb);
    image = common::view_of(square);
  }
  const std::size_t whole_bytes = p_.views[kGlobal].pixel_bytes();
  const bool is_limited = image.width_px != crop.width_px || image.height_px != crop.height_px;
  const media::Image limited =
      is_limited ? resized(image, crop.width_px, crop.height_px) : media::Image{};
  fill_view(is_limited ? common::view_of(limited) : image, p_.views[kGlobal],
            out.first(whole_bytes));
  if (crop.window_px > 0) fill_windows(image, crop, out.subspan(whole_bytes));
}

void Processor::fill_windows(const RgbView& image, const common::Crop& crop,
                             std::span<std::uint8_t> out) const {
  const media::Image source = resized(image, crop.crop_width_px, crop.crop_height_px);
  const std::size_t view_bytes = p_.views[kLocal].pixel_bytes();
  for (std::int64_t i = 0; i < crop.windows.count(); ++i, out = out.subspan(view_bytes)) {
    const media::Image window = cut(common::view_of(source), i % crop.windows.cols * crop.window_px,
                                    i / crop.windows.cols * crop.window_px, crop.window_px);
    fill_view(common::view_of(window), p_.views[kLocal], out.first(view_bytes));
  }
}

media::Image Processor::resized(const RgbView& image, std::int64_t width_px,
                                std::int64_t height_px) const {
  return common::resized(image, width_px, height_px, p_.engine, kFilter);
}

void Processor::fill_view(const RgbView& image, const common::SquareView& view,
                          std::span<std::uint8_t> out) const {
  common::resize(image, view.side_px, view.side_px, p_.engine, kFilter, out);
}

}  // namespace fovea::step3p7
