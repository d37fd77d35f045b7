// Checking, resizing and placing frames.
#include "models/common/frames.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "core/check.h"
#include "media/reduction.h"

namespace fovea::common {

namespace {

/// Whether a frame shows the whole source of a plan, at a size that the plan allows.
bool is_planned(const ItemPlan& plan, const RgbView& frame) {
  const Margins& m = frame.margins;
  const double width = static_cast<double>(frame.width_px) - m.left_px - m.right_px;
  const double height = static_cast<double>(frame.height_px) - m.top_px - m.bottom_px;
  return std::ranges::any_of(media::kReductions, [&](int reduction) {
    return (reduction == 1 || plan.target_width_px > 0) &&
           width * reduction == static_cast<double>(plan.source_width_px) &&
           height * reduction == static_cast<double>(plan.source_height_px);
  });
}

/// Element `i` of `count` multiples of `step` as torch.arange computes them in f32: by eights,
/// whose first element is rounded before the others are counted from it.
float multiple(std::int64_t i, std::int64_t count, double step) {
  constexpr std::int64_t kLanes = 8;
  const std::int64_t first = i < count / kLanes * kLanes ? i / kLanes * kLanes : i;
  const auto base = static_cast<float>(static_cast<double>(first) * step);
  return static_cast<float>(static_cast<double>(base) + static_cast<double>(i - first) * step);
}

}  // namespace

void check_area(std::int64_t width_px, std::int64_t height_px) {
  FOVEA_CHECK(width_px >= 1 && height_px >= 1, kInvalidArgument, "image of ", width_px, "x",
              height_px, " pixels has no area");
}

void check_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                 std::span<const std::uint8_t> out) {
  FOVEA_CHECK(index >= 0 && index < plan.num_frames, kInvalidArgument, "item was planned for ",
              plan.num_frames, plan.num_frames == 1 ? " frame" : " frames", ", got frame ", index);
  FOVEA_CHECK(is_planned(plan, frame), kInvalidArgument, "frame ", index, " is ", frame.width_px,
              "x", frame.height_px, " pixels, planned was ", plan.source_width_px, "x",
              plan.source_height_px);
  FOVEA_CHECK(out.size() == plan.pixel_bytes, kInternal, "pixels need ", plan.pixel_bytes,
              " bytes, got ", out.size());
}

void set_units(std::int64_t units, std::int64_t rows, ItemPlan& plan) {
  plan.unit_bytes[0] = plan.pixel_bytes / static_cast<std::size_t>(units);
  FOVEA_CHECK(std::in_range<std::int32_t>(plan.unit_bytes[0]), kInvalidArgument,
              plan.modality == Modality::kImage ? "image" : "video", " of ", plan.source_width_px,
              "x", plan.source_height_px, ": more pixels than one item can have");
  plan.spec.num_seqs = units;
  plan.spec.out_rows = rows;
  plan.spec.path_tokens[0] = rows;
  plan.spec.units[0] = {units, plan.spec.input_rows / units, rows / units};
}

void resize(RgbView image, std::int64_t width_px, std::int64_t height_px,
            media::ResizeEngine engine, media::ResizeFilter filter, std::span<std::uint8_t> out) {
  media::resize_rgb(
      {.src = {image.rgb, static_cast<std::size_t>(image.width_px * image.height_px * 3)},
       .src_width_px = image.width_px,
       .src_height_px = image.height_px,
       .dst = out,
       .dst_width_px = width_px,
       .dst_height_px = height_px,
       .engine = engine,
       .filter = filter,
       .src_margins = image.margins});
}

void resize_fine(const RgbView& image, std::int64_t width_px, std::int64_t height_px,
                 media::FineFilter filter, std::span<std::uint8_t> out) {
  media::resize_rgb_fine(
      {.src = {image.rgb, static_cast<std::size_t>(image.width_px * image.height_px * 3)},
       .src_width_px = image.width_px,
       .src_height_px = image.height_px,
       .dst = out,
       .dst_width_px = width_px,
       .dst_height_px = height_px,
       .filter = filter});
}

media::Image resized(RgbView image, std::int64_t width_px, std::int64_t height_px,
                     media::ResizeEngine engine, media::ResizeFilter filter) {
  media::Image result{width_px, height_px, {}};
  result.rgb.resize(static_cast<std::size_t>(width_px * height_px * 3));
  resize(image, width_px, height_px, engine, filter, result.rgb);
  return result;
}

void paste(RgbView image, std::int64_t left_px, std::int64_t top_px, std::int64_t canvas_width_px,
           std::span<std::uint8_t> canvas) {
  const std::int64_t row_bytes = image.width_px * 3;
  for (std::int64_t y = 0; y < image.height_px; ++y) {
    std::copy_n(image.rgb + y * row_bytes, row_bytes,
                canvas.begin() + ((top_px + y) * canvas_width_px + left_px) * 3);
  }
}

media::Image on_canvas(RgbView image, std::int64_t left_px, std::int64_t top_px,
                       std::int64_t width_px, std::int64_t height_px, std::uint8_t level) {
  media::Image canvas{width_px, height_px, {}};
  canvas.rgb.assign(static_cast<std::size_t>(width_px * height_px * 3), level);
  paste(image, left_px, top_px, width_px, canvas.rgb);
  return canvas;
}

double spaced(double first, double last, std::int64_t count, std::int64_t i) {
  if (count == 1) return first;
  if (i == count - 1) return last;
  return static_cast<double>(i) * ((last - first) / static_cast<double>(count - 1)) + first;
}

std::vector<std::int64_t> spread_frames(std::int64_t first, std::int64_t last, std::int64_t count) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < count; ++i) {
    indices.push_back(static_cast<std::int64_t>(
        spaced(static_cast<double>(first), static_cast<double>(last), count, i)));
  }
  return indices;
}

std::int64_t checked_count(std::int64_t num_frames, std::int64_t total) {
  FOVEA_CHECK(num_frames >= 1 && num_frames <= total, kInvalidArgument,
              "num_frames: expected 1 to the ", total, " frames of the video, got ", num_frames);
  return num_frames;
}

std::vector<std::int64_t> stepped_frames(std::int64_t total, std::int64_t count) {
  return stepped_frames(total, count, static_cast<double>(total) / static_cast<double>(count));
}

std::vector<std::int64_t> stepped_frames(std::int64_t total, std::int64_t count, double step) {
  std::vector<std::int64_t> indices;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<std::int64_t>(multiple(i, count, step));
    indices.push_back(std::min(index, total - 1));
  }
  return indices;
}

std::int64_t frames_at(std::int64_t total, double fps, double target_fps) {
  const auto most = static_cast<double>(total);
  return static_cast<std::int64_t>(std::clamp(most / fps * target_fps, 1.0, most));
}

std::vector<std::int64_t> sample_evenly(std::int64_t total_frames, double video_fps,
                                        double target_fps, std::int64_t most) {
  auto count = static_cast<double>(std::min(total_frames, most));
  if (video_fps > 0) {
    count = std::min(count, std::floor(static_cast<double>(total_frames) / video_fps * target_fps));
  }
  return spread_frames(0, total_frames - 1,
                       std::max<std::int64_t>(1, static_cast<std::int64_t>(count)));
}

void check_pixel_offsets(std::int64_t pixel_bytes, std::size_t num_items) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  FOVEA_CHECK(pixel_bytes <= kMost, kInvalidArgument, "sub-batch of ", num_items,
              " items: expected at most ", kMost, " bytes of resized pixels, got ", pixel_bytes,
              "; lower max_num_batched_tokens and the token budgets, or encode smaller images");
}

}  // namespace fovea::common
