// From images and frames to square views.
#include "models/llava/processor.h"

#include <algorithm>

#include "core/check.h"
#include "models/common/frames.h"
#include "models/common/views/canvas.h"

namespace fovea::llava {

namespace {

using common::Size2d;
using common::Tiling;

constexpr std::int64_t kMaxFrames = 32;  // of a video, vLLM's default

/// The size of an image whose shorter side becomes `edge`.
Size2d with_shortest_edge(const Size2d& image, std::int64_t edge) {
  const auto longer = [&](std::int64_t side, std::int64_t other) {
    return static_cast<std::int64_t>(static_cast<double>(edge * side) / static_cast<double>(other));
  };
  if (image.width_px <= image.height_px) return {longer(image.height_px, image.width_px), edge};
  return {edge, longer(image.width_px, image.height_px)};
}

Size2d source_of(const ItemPlan& plan) { return {plan.source_height_px, plan.source_width_px}; }

}  // namespace

ItemPlan Processor::plan_square(std::int64_t width_px, std::int64_t height_px) const {
  constexpr std::int64_t kMostPixels = std::int64_t{1} << 27;  // 3 bytes each
  ItemPlan plan = common::plan_tiles(width_px, height_px, {}, {processing().view, 1});
  if (p_.shortest_edge == 0) return plan;
  const Size2d size = with_shortest_edge({height_px, width_px}, p_.shortest_edge);
  FOVEA_CHECK(size.width_px * size.height_px <= kMostPixels, kInvalidArgument, "image of ",
              width_px, "x", height_px, " pixels: expected at most ", kMostPixels,
              " pixels before its centre is cut out, got ", size.width_px, "x", size.height_px);
  plan.target_width_px = size.width_px;
  plan.target_height_px = size.height_px;
  return plan;
}

ItemPlan Processor::plan_image(std::int64_t width_px, std::int64_t height_px) const {
  common::check_area(width_px, height_px);
  if (p_.canvases.empty()) return plan_square(width_px, height_px);
  const common::SquareView& view = processing().view;
  const Size2d image{height_px, width_px};
  const Tiling canvas = common::best_canvas(image, p_.canvases, view.side_px);
  const common::CanvasRows rows =
      common::canvas_rows(image, canvas, view.grid(), p_.max_canvas_views);
  ItemPlan plan = common::plan_tiles(width_px, height_px, canvas, {view, 1 + canvas.count()});
  const Size2d fitted = common::fitted_size(image, {plan.resized_height_px, plan.resized_width_px});
  plan.target_width_px = std::max(fitted.width_px, view.side_px);
  plan.target_height_px = std::max(fitted.height_px, view.side_px);
  plan.spec.out_rows = view.tokens() + rows.grid.height_px * (rows.grid.width_px + 1);
  // Rows that are shrunk have those of several views under them. Where units have as many rows as
  // the item, others would take these for its rows, one unit after the other.
  if (rows.is_shrunk() || plan.spec.out_rows == plan.spec.path_tokens[0]) {
    plan.spec.units[0] = {1, plan.spec.input_rows, plan.spec.path_tokens[0]};
    plan.unit_bytes = {};
  }
  return plan;
}

ItemPlan Processor::plan_video(std::int64_t num_frames, std::int64_t width_px,
                               std::int64_t height_px) const {
  if (p_.format != Format::kOnevision) {
    return ItemProcessor::plan_video(num_frames, width_px, height_px);
  }
  ItemPlan plan = plan_frames(num_frames, width_px, height_px);
  const std::int64_t side = pooled_side(processing().view);
  plan.spec.out_rows = num_frames * side * side + 1;
  return plan;
}

std::vector<std::int64_t> Processor::sample_frames(std::int64_t total_frames, double video_fps,
                                                   double target_fps) const {
  if (p_.format != Format::kOnevision) {
    return ItemProcessor::sample_frames(total_frames, video_fps, target_fps);
  }
  return common::sample_evenly(total_frames, video_fps, target_fps, kMaxFrames);
}

void Processor::fill_square(const ItemPlan& plan, const RgbView& image,
                            std::span<std::uint8_t> out) const {
  if (p_.shortest_edge == 0) return fill_view(image, out);
  const std::int64_t side = processing().view.side_px;
  const Size2d size = with_shortest_edge(source_of(plan), p_.shortest_edge);
  const media::Image whole = common::resized(image, size.width_px, size.height_px,
                                             processing().engine, processing().filter);
  common::cut_square(common::view_of(whole), (size.width_px - side) / 2,
                     (size.height_px - side) / 2, side, out);
}

void Processor::fill_canvas(const ItemPlan& plan, const RgbView& image,
                            std::span<std::uint8_t> out) const {
  const common::SquareView& view = processing().view;
  fill_view(image, out.first(view.pixel_bytes()));
  const Size2d canvas{plan.resized_height_px, plan.resized_width_px};
  const Size2d size = common::fitted_size(source_of(plan), canvas);
  const media::Image fitted = common::resized(image, size.width_px, size.height_px,
                                              processing().engine, processing().filter);
  const media::Image padded = common::on_canvas(
      common::view_of(fitted), (canvas.width_px - size.width_px) / 2,
      (canvas.height_px - size.height_px) / 2, canvas.width_px, canvas.height_px, 0);
  common::cut_tiles(common::view_of(padded), {.cols = plan.grid[2], .rows = plan.grid[1]},
                    view.side_px, out.subspan(view.pixel_bytes()));
}

void Processor::fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                           std::span<std::uint8_t> out) const {
  if (plan.modality == Modality::kVideo) return ViewProcessor::fill_frame(plan, index, frame, out);
  common::check_frame(plan, index, frame, out);
  p_.canvases.empty() ? fill_square(plan, frame, out) : fill_canvas(plan, frame, out);
}

}  // namespace fovea::llava
