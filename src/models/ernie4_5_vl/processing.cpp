// Sizes and sampling of ERNIE-4.5-VL. Limits of areas count the pixels of one image or frame.
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "models/common/frames.h"
#include "models/common/grid/processor_file.h"
#include "models/common/grid/smart_resize.h"
#include "models/ernie4_5_vl/model.h"

namespace fovea::ernie4_5_vl {

namespace {

using common::GridProcessing;

/// Source: transformers 5.24, ernie4_5_vl_moe/image_processing_ernie4_5_vl_moe.py.
constexpr common::ProcessorClass kImages{
    .range = {56 * 56, 28 * 28 * 6177}, .scaling = common::kClipScaling, .overrides_size = true};

/// Source: transformers 5.24, ernie4_5_vl_moe/video_processing_ernie4_5_vl_moe.py.
constexpr std::array<std::string_view, 2> kVideoKeys{"min_frames", "max_frames"};
constexpr common::ProcessorClass kVideos{.range = {299 * 28 * 28, 1196 * 28 * 28},
                                         .scaling = common::kClipScaling,
                                         .overrides_size = true,
                                         .more = kVideoKeys};

/// Why videos are refused: their frames would show the time. Empty if the file switches that off.
std::string drawing_refusal(const checkpoint::HfConfig& files) {
  const auto video = files.video_processor();
  if (video && !video->bool_or("draw_on_frames", true)) return "";
  const bool is_default = !video || !video->find("draw_on_frames");
  return cat(video ? video->path() : files.directory + "/video_preprocessor_config.json",
             ".draw_on_frames: true", is_default ? ", which is the default," : "",
             " is not supported: the time would be drawn on every frame with a font; false takes "
             "frames as they are");
}

/// Frames at about `target_fps` within the bounds: arange(0, total, total / count), truncated,
/// where `count` need not be whole. An unknown rate counts as 24.
std::vector<std::int64_t> sample_frames(const common::VideoBounds& bounds,
                                        std::int64_t total_frames, double video_fps,
                                        double target_fps) {
  const auto total = static_cast<double>(total_frames);
  const double fps = video_fps > 0 ? video_fps : common::kUnknownFps;
  const double wanted =
      std::min({std::max(total / fps * target_fps, static_cast<double>(bounds.min_frames)),
                static_cast<double>(bounds.max_frames), total});
  const double step = total / wanted;
  const auto count = static_cast<std::int64_t>(std::ceil(total / step));
  return common::stepped_frames(total_frames, count, step);
}

}  // namespace

GridProcessing read_processing(const checkpoint::HfConfig& files,
                               const common::GridGeometry& geometry, const MediaOptions& media) {
  GridProcessing p{.geometry = geometry};
  const std::string refusal = drawing_refusal(files);
  const common::ProcessorClass videos = refusal.empty() ? kVideos : common::ProcessorClass{};
  common::read_grid_processor(files, {.image = kImages, .video = videos}, media, p);
  if (!refusal.empty()) p.video_refusal = refusal;
  const common::VideoBounds bounds =
      common::read_video_bounds(files, {}, {.min_frames = 16, .max_frames = 180});
  const auto size_within = [factor = geometry.resize_factor()](common::PixelRange range) {
    return [=](std::int64_t height_px, std::int64_t width_px) {
      return common::smart_resize_image(height_px, width_px, factor, range);
    };
  };
  p.image_size = size_within(p.limits.image);
  p.video_size = [size = size_within(p.limits.video)](std::int64_t, std::int64_t height_px,
                                                      std::int64_t width_px) {
    return size(height_px, width_px);
  };
  p.sample_frames = [bounds](std::int64_t total, double video_fps, double target_fps) {
    return sample_frames(bounds, total, video_fps, target_fps);
  };
  return p;
}

}  // namespace fovea::ernie4_5_vl
