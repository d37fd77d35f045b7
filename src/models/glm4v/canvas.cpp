// Host side of GLM-5: frames on a canvas, whose size a search finds where they are too large.
#include "models/glm4v/canvas.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
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
  const auto aligned = [&](std::int64_t side) {
    return (std::max<std::int64_t>(1, side) + factor - 1) / factor * factor;
  };
  const std::int64_t frames =
      std::max(temporal_factor, common::round_to(num_frames, temporal_factor));
  const auto volume = [&](Size2d size) { return frames * size.height_px * size.width_px; };
  Size2d size{aligned(height_px), aligned(width_px)};
  if (volume(size) < range.min_pixels) {
    const double scale = std::sqrt(as_double(range.min_pixels) /
                                   (as_double(num_frames) * as_double(height_px * width_px)));
    const auto grown = [&](std::int64_t side) {
      return aligned(static_cast<std::int64_t>(std::ceil(as_double(side) * scale)));
    };
    size = {grown(height_px), grown(width_px)};
  }
  if (volume(size) <= range.max_pixels) return size;

  size = {factor, factor};
  FOVEA_CHECK(volume(size) <= range.max_pixels, kInvalidArgument, num_frames,
              " frames need at least ", volume(size), " pixels, one token for ", temporal_factor,
              ", the limit is ", range.max_pixels);
  // The tallest content whose canvas is within the range.
  for (std::int64_t low = 1, high = height_px; low <= high;) {
    const std::int64_t height = (low + high) / 2;
    const Size2d candidate{aligned(height), aligned(width_px * height / height_px)};
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
    return std::clamp<std::int64_t>(static_cast<std::int64_t>(as_double(side) * scale), 1, most);
  };
  return {scaled(height_px, canvas.height_px), scaled(width_px, canvas.width_px)};
}

common::GridProcessing read_canvas_processing(const checkpoint::HfConfig& files,
                                              const common::GridGeometry& geometry,
                                              const MediaOptions& media) {
  constexpr std::int64_t kMostFrames = 2048;
  const auto file = files.video_processor();
  CanvasRule image = rule_for(files.image_processor(), geometry);
  CanvasRule video = rule_for(file, geometry);
  common::GridProcessing p{.geometry = geometry};
  common::read_grid_processor(
      files, {.image = class_for(image, 8000, {}), .video = class_for(video, 240000, kSamplerKeys)},
      media, p);
  image.range = p.limits.image;
  video.range = p.limits.video;
  p.image_size = std::bind_front(&CanvasRule::canvas, image, image.temporal_factor);
  p.video_size = std::bind_front(&CanvasRule::canvas, video);
  p.content_size = [=](const ItemPlan& plan) {
    const bool is_video = plan.modality == Modality::kVideo;
    const CanvasRule& rule = is_video ? video : image;
    return rule.content(is_video ? plan.num_frames : rule.temporal_factor, plan.source_height_px,
                        plan.source_width_px, {plan.resized_height_px, plan.resized_width_px});
  };
  const std::int64_t max_frames =
      file ? common::read_size(*file, "max_frames", kMostFrames) : kMostFrames;
  const std::int64_t max_duration = file ? file->int_or("max_duration", 0) : 0;
  p.sample_frames = [=](std::int64_t total, double video_fps, double target_fps) {
    return sample_up_to(Clip(total, video_fps), max_frames, max_duration, target_fps);
  };
  return p;
}

}  // namespace fovea::glm4v
