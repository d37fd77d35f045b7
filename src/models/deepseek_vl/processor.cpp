// From images to padded squares.
#include "models/deepseek_vl/processor.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/frames.h"
#include "models/common/views/tiles.h"

namespace fovea::deepseek_vl {

namespace {

/// The mean of the file as bytes, rounded down. Its decimal numbers count, not the floats nearest
/// to them.
std::array<std::uint8_t, 3> bytes_of(const JsonView& image_mean) {
  std::array<std::uint8_t, 3> bytes{};
  const std::vector<JsonView> means = common::elements_of(image_mean, bytes.size());
  for (std::size_t c = 0; c < bytes.size(); ++c) {
    const double byte = means[c].as_number() * 255;
    FOVEA_CHECK(byte >= 0 && byte < 256, kUnsupported, means[c].path(),
                ": padding needs a number in [0, 1], got ", means[c].as_number());
    bytes[c] = static_cast<std::uint8_t>(byte);
  }
  return bytes;
}

}  // namespace

Processing read_processing(const checkpoint::HfConfig& files, const Config& config,
                           const MediaOptions& media) {
  const common::SquareView& view = config.tower.view;
  Processing p{.views = common::read_view_processing(
                   files, view, media, {.scaling = common::kClipScaling}, {"min_size", "do_pad"})};
  const auto file = files.image_processor();
  if (file) {
    common::require_flag(*file, "do_pad", true);
    p.min_size = common::read_size(*file, "min_size", p.min_size);
    if (const auto mean = file->find("image_mean")) p.background = bytes_of(*mean);
  }
  FOVEA_CHECK(p.min_size <= view.side_px, kUnsupported, file ? file->path() : files.directory,
              ": min_size: images of at least ", p.min_size, " pixels do not fit views of ",
              view.side_px);
  return p;
}

ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  common::check_area(width_px, height_px);
  const common::SquareView& view = processing().view;
  const double delta =
      static_cast<double>(view.side_px) / static_cast<double>(std::max(width_px, height_px));
  const auto resized = [&](std::int64_t side) {  // halves to the even number
    const double nearest = std::nearbyint(static_cast<double>(side) * delta);
    return std::max(static_cast<std::int64_t>(nearest), min_size_);
  };
  ItemPlan plan = common::plan_views(width_px, height_px, {}, {{view, 1}});
  plan.resized_width_px = plan.target_width_px = resized(width_px);
  plan.resized_height_px = plan.target_height_px = resized(height_px);
  return plan;
}

void Processor::fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                           std::span<std::uint8_t> out) const {
  common::check_frame(plan, index, frame, out);
  const std::int64_t side = processing().view.side_px;
  const media::Image image = common::resized(frame, plan.resized_width_px, plan.resized_height_px,
                                             processing().engine, processing().filter);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = background_[i % background_.size()];
  common::paste(common::view_of(image), (side - image.width_px) / 2, (side - image.height_px) / 2,
                side, out);
}

}  // namespace fovea::deepseek_vl
