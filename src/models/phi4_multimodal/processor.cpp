// From an image to a canvas of views and a global view of that canvas.
#include "models/phi4_multimodal/processor.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "core/check.h"
#include "media/resize/resize_fine.h"
#include "models/common/config_reader.h"
#include "models/common/frames.h"

namespace fovea::phi4_multimodal {

namespace {

constexpr std::int64_t kMaxViews = 1024;  // far above the 36 of published checkpoints
constexpr std::int64_t kLeastSide = 10;   // pixels of a resized image
constexpr std::uint8_t kWhite = 255;

constexpr auto kPlanes = static_cast<std::int64_t>(media::kLevelBytes);

std::int64_t views_of(std::int64_t side_px, std::int64_t view_px) {
  return (side_px + view_px - 1) / view_px;
}

/// Resizes into levels, or keeps the size. @param out [planes, height_px, width_px, 3].
void fill_levels(const media::Image& image, std::int64_t width_px, std::int64_t height_px,
                 std::span<std::uint8_t> out) {
  media::resize_rgb_fine({.src = image.rgb,
                          .src_width_px = image.width_px,
                          .src_height_px = image.height_px,
                          .dst = out,
                          .dst_width_px = width_px,
                          .dst_height_px = height_px,
                          .filter = media::FineFilter::kPlainBicubic});
}

/// The upper left of an image, which has at least that size.
media::Image upper_left(const media::Image& image, std::int64_t width_px, std::int64_t height_px) {
  media::Image part{width_px, height_px, {}};
  for (std::int64_t y = 0; y < height_px; ++y) {
    const auto from = image.rgb.begin() + y * image.width_px * 3;
    part.rgb.insert(part.rgb.end(), from, from + width_px * 3);
  }
  return part;
}

}  // namespace

Processing read_processing(const checkpoint::HfConfig& files, const Config& config,
                           const MediaOptions& media) {
  const bool vendor = config.format == Format::kVendor;
  Processing p{.view = config.tower.view,
               .engine = common::resize_engine(media, vendor ? media::ResizeEngine::kPillow
                                                             : media::ResizeEngine::kTorchvision)};
  const auto file = files.image_processor();
  if (file) {
    common::check_size(*file, p.view.side_px);
    common::require_number(*file, "patch_size", static_cast<double>(p.view.patch_px));
    common::require_number(*file, "resample", 3);  // bicubic, of the global view
    p.dynamic_hd = common::read_size(*file, "dynamic_hd", p.dynamic_hd, kMaxViews);
    p.scaling = common::read_scaling(*file, p.scaling);
  }
  p.assumptions = common::missing_text(
      file ? file->path() : files.directory + "/preprocessor_config.json", file.has_value(),
      {common::assumed(file, "dynamic_hd", cat(p.dynamic_hd))});
  p.sources = common::sources_text(
      "image", file,
      common::sourced(file, {"size", "dynamic_hd", "image_mean", "image_std", "rescale_factor"}));
  return p;
}

Placement place_image(const Processing& p, std::int64_t width_px, std::int64_t height_px) {
  common::check_area(width_px, height_px);
  const std::int64_t side = p.view.side_px;
  Placement place{.canvas = {.cols = views_of(width_px, side), .rows = views_of(height_px, side)}};
  if (place.canvas.cols > p.dynamic_hd || place.canvas.rows > p.dynamic_hd ||
      place.canvas.count() > p.dynamic_hd) {
    place.canvas = common::nearest_tiling(width_px, height_px, side, 1, p.dynamic_hd);
  }
  const std::int64_t canvas_width = place.canvas.cols * side;
  const std::int64_t canvas_height = place.canvas.rows * side;
  const double across = static_cast<double>(canvas_width) / static_cast<double>(width_px);
  const double down = static_cast<double>(canvas_height) / static_cast<double>(height_px);
  place.width_px = canvas_width;
  place.height_px = canvas_height;
  if (across < down) {
    place.height_px = static_cast<std::int64_t>(static_cast<double>(height_px) * across);
  } else {
    place.width_px = static_cast<std::int64_t>(static_cast<double>(width_px) * down);
  }
  FOVEA_CHECK(std::min(place.width_px, place.height_px) >= kLeastSide, kInvalidArgument,
              "image of ", width_px, "x", height_px, " pixels is too thin: resized it would be ",
              place.width_px, "x", place.height_px, ", and ", kLeastSide, " is the least");
  const std::int64_t patch = p.view.patch_px;
  place.rows = canvas_height / patch - (canvas_height - place.height_px) / patch;
  place.cols = canvas_width / patch - (canvas_width - place.width_px) / patch;
  return place;
}

ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  const Placement place = place_image(p_, width_px, height_px);
  const std::int64_t side = p_.view.grid() / 2;
  const std::int64_t tokens = side * side + place.token_rows() * place.token_cols();
  const std::int64_t token_bytes = 4 * p_.view.patch_px * p_.view.patch_px * 3 * kPlanes;
  ItemPlan plan;
  plan.source_width_px = width_px;
  plan.source_height_px = height_px;
  plan.resized_width_px = place.width_px;
  plan.resized_height_px = place.height_px;
  plan.target_width_px = place.width_px;
  plan.target_height_px = place.height_px;
  plan.grid = {1, place.canvas.rows, place.canvas.cols};
  FOVEA_CHECK(tokens <= std::numeric_limits<std::int32_t>::max() / token_bytes, kInvalidArgument,
              "image of ", width_px, "x", height_px, ": more pixels than one item can have");
  plan.pixel_bytes = static_cast<std::size_t>(tokens * token_bytes);
  plan.unit_bytes[0] = plan.pixel_bytes;
  plan.spec.input_rows = 4 * tokens;
  plan.spec.out_rows =
      tokens + place.token_rows() + 1 + side;  // separators behind rows, one between
  plan.spec.num_seqs = 1;  // sequences are views, whose number the capacity in tokens bounds
  plan.spec.path_tokens[0] = plan.spec.out_rows;
  plan.spec.units[0] = {1, plan.spec.input_rows, plan.spec.out_rows};
  return plan;
}

void Processor::fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                           std::span<std::uint8_t> out) const {
  common::check_frame(plan, index, frame, out);
  const std::int64_t side = p_.view.side_px;
  const Placement place = place_image(p_, plan.source_width_px, plan.source_height_px);
  media::Image canvas{place.canvas.cols * side, place.canvas.rows * side, {}};
  canvas.rgb.assign(static_cast<std::size_t>(canvas.width_px * canvas.height_px * 3), kWhite);
  const media::Image image = common::resized(frame, place.width_px, place.height_px, p_.engine,
                                             media::ResizeFilter::kBilinear);
  common::paste(common::view_of(image), 0, 0, canvas.width_px, canvas.rgb);
  const auto global_bytes = static_cast<std::size_t>(side * side * 3 * kPlanes);
  fill_levels(canvas, side, side, out.first(global_bytes));
  const std::int64_t token_px = 2 * p_.view.patch_px;
  const media::Image part =
      upper_left(canvas, place.token_cols() * token_px, place.token_rows() * token_px);
  fill_levels(part, part.width_px, part.height_px, out.subspan(global_bytes));
}

}  // namespace fovea::phi4_multimodal
