// Host side of GLM-5: frames on a canvas, whose size a search finds where they are too large.
#include "models/glm4v/canvas.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include "core/check.h"
#include "models/common/config_reader.h"
#include "models/common/frames.h"
#include "models/common/grid/processor_file.h"
#include "models/glm4v/sampling.h"

namespace fovea::glm4v {

namespace {

using common::Size2d;

constexpr std::array<std::string_view, 2> kSamplerKeys{"max_frames", "max_duration"};

double as_double(std::int64_t value) { return static_cast<double>(value); }

std::int64_t floor_of(double value) { return static_cast<std::int64_t>(std::floor(value)); }
std::int64_t ceil_of(double value) { return static_cast<std::int64_t>(std::ceil(value)); }

/// Source: transformers 5.24, glm5_next/image_processing_glm5_next.py and
/// video_processing_glm5_next.py.
common::ProcessorClass class_for(const CanvasRule& rule, std::int64_t most_tokens,
                                 std::span<const std::string_view> more) {
  const std::int64_t token = rule.temporal_factor * rule.factor * rule.factor;
  return {.range = {16 * token, most_tokens * token},
          .scaling = common::kClipScaling,
          .token_pixels = token,
          .more = more};
}

CanvasRule rule_for(const std::optional<JsonView>& file, const common::GridGeometry& geometry) {
  const std::int64_t expanded = file ? common::read_size(*file, "patch_expand_factor", 1) : 1;
  return {.temporal_factor = geometry.temporal_patch_size,
          .factor = geometry.resize_factor() * expanded};
}

}  // namespace

Size2d CanvasRule::canvas(std::int64_t num_frames, std::int64_t height_px,
                          std::int64_t width_px) const {
  common::check_area(width_px, height_px);
  const auto aligned = [&](std::int64_t height, std::int64_t width) -> Size2d {
    const auto up = [&](std::int64_t side) { return (side + factor - 1) / factor * factor; };
    return {up(height), up(width)};
  };
  const std::int64_t frames = std::max(
      temporal_factor, static_cast<std::int64_t>(
                           std::nearbyint(as_double(num_frames) / as_double(temporal_factor))) *
                           temporal_factor);
  const auto volume = [&](Size2d size) { return frames * size.height_px * size.width_px; };
  Size2d size = aligned(height_px, width_px);
  if (volume(size) < range.min_pixels) {
    const double scale = std::sqrt(as_double(range.min_pixels) /
                                   (as_double(num_frames) * as_double(height_px * width_px)));
    size = aligned(std::max<std::int64_t>(1, ceil_of(as_double(height_px) * scale)),
                   std::max<std::int64_t>(1, ceil_of(as_double(width_px) * scale)));
  }
  if (volume(size) <= range.max_pixels) return size;

  size = {factor, factor};
  FOVEA_CHECK(volume(size) <= range.max_pixels, kInvalidArgument, num_frames,
              " frames need at least ", volume(size), " pixels, one token for ", temporal_factor,
              ", the limit is ", range.max_pixels);
  // The tallest content whose canvas is within the range.
  for (std::int64_t low = 1, high = height_px; low <= high;) {
    const std::int64_t height = (low + high) / 2;
    const std::int64_t width =
        std::max<std::int64_t>(1, floor_of(as_double(width_px * height) / as_double(height_px)));
    const Size2d candidate = aligned(height, width);
    const bool fits = volume(candidate) <= range.max_pixels;
    if (fits) size = candidate;
    (fits ? low : high) = fits ? height + 1 : height - 1;
  }
  return size;
}

Size2d CanvasRule::content(std::int64_t num_frames, std::int64_t height_px, std::int64_t width_px,
                           Size2d canvas) const {
  double scale = std::min(as_double(canvas.height_px) / as_double(height_px),
                          as_double(canvas.width_px) / as_double(width_px));
  if (num_frames * height_px * width_px >= range.min_pixels) scale = std::min(1.0, scale);
  const auto scaled = [&](std::int64_t side, std::int64_t most) {
    return std::clamp<std::int64_t>(floor_of(as_double(side) * scale), 1, most);
  };
  return {scaled(height_px, canvas.height_px), scaled(width_px, canvas.width_px)};
}

CanvasProcessing read_canvas_processing(const checkpoint::HfConfig& files,
                                        const common::GridGeometry& geometry,
                                        const MediaOptions& media) {
  constexpr std::int64_t kMostFrames = 2048;
  CanvasProcessing p{.grid = {.geometry = geometry},
                     .image = rule_for(files.image_processor(), geometry),
                     .video = rule_for(files.video_processor(), geometry)};
  common::read_grid_processor(
      files,
      {.image = class_for(p.image, 8000, {}), .video = class_for(p.video, 240000, kSamplerKeys)},
      media, p.grid);
  p.image.range = p.grid.limits.image;
  p.video.range = p.grid.limits.video;
  p.grid.image_size = [rule = p.image](std::int64_t height_px, std::int64_t width_px) {
    return rule.canvas(rule.temporal_factor, height_px, width_px);
  };
  p.grid.video_size = [rule = p.video](std::int64_t num_frames, std::int64_t height_px,
                                       std::int64_t width_px) {
    return rule.canvas(num_frames, height_px, width_px);
  };
  const auto video = files.video_processor();
  const std::int64_t max_frames =
      video ? common::read_size(*video, "max_frames", kMostFrames) : kMostFrames;
  const std::int64_t max_duration = video ? video->int_or("max_duration", 0) : 0;
  p.grid.sample_frames = [=](std::int64_t total, double video_fps, double target_fps) {
    return Clip(total, video_fps).sample_up_to(max_frames, max_duration, target_fps);
  };
  return p;
}

void CanvasProcessor::fill_frame(const ItemPlan& plan, std::int64_t index, const RgbView& frame,
                                 std::span<std::uint8_t> out) const {
  common::check_frame(plan, index, frame, out);
  const bool is_video = plan.modality == Modality::kVideo;
  const CanvasRule& rule = is_video ? video_ : image_;
  const Size2d content =
      rule.content(is_video ? plan.num_frames : rule.temporal_factor, plan.source_height_px,
                   plan.source_width_px, {plan.resized_height_px, plan.resized_width_px});
  const media::Image image = common::resized(frame, content.width_px, content.height_px,
                                             processing().engine, processing().filter);
  const std::size_t frame_bytes = out.size() / static_cast<std::size_t>(plan.num_frames);
  const auto canvas = out.subspan(static_cast<std::size_t>(index) * frame_bytes, frame_bytes);
  std::ranges::fill(canvas, std::uint8_t{0});
  common::paste(common::view_of(image), 0, 0, plan.resized_width_px, canvas);
}

}  // namespace fovea::glm4v
