// Host side of GLM-4.1V and its successors: limits of areas count frames times pixels, of images
// too; frames are sampled by time, in even numbers.
#include "models/glm4v/config.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "models/common/config_reader.h"
#include "models/common/frames.h"
#include "models/common/grid/processor_file.h"
#include "models/registry.h"

namespace fovea::glm4v {

namespace {

using Indices = std::vector<std::int64_t>;

constexpr std::array<std::string_view, 1> kVideoKeys{"max_duration"};

/// Source: transformers 5.24, glm4v/image_processing_glm4v.py, video_processing_glm4v.py and the
/// same of glm46v.
constexpr common::ProcessorClasses kClasses{
    .image = {.range = {112 * 112, 28 * 28 * 15000}, .scaling = common::kClipScaling},
    .video = {.range = {112 * 112, 28 * 28 * 60000},
              .scaling = common::kClipScaling,
              .more = kVideoKeys}};

/// A video file as the samplers see it.
struct Clip {
  std::int64_t total_frames;
  double fps;
  double seconds;

  /// @param video_fps 0 if unknown: whole seconds then.
  Clip(std::int64_t total, double video_fps)
      : total_frames(total),
        fps(video_fps > 0 ? video_fps : common::kUnknownFps),
        seconds(video_fps > 0 ? static_cast<double>(total) / fps
                              : std::nearbyint(static_cast<double>(last()) / fps) + 1) {}

  [[nodiscard]] std::int64_t last() const { return total_frames - 1; }
  /// The first frame at `position`, counted in frames, or later.
  [[nodiscard]] std::int64_t frame_from(double position) const {
    return static_cast<std::int64_t>(std::min(static_cast<double>(last()), std::ceil(position)));
  }
};

/// Every frame once, and the last one again if that makes their number even.
Indices paired(Indices indices) {
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  if (indices.size() % 2 == 1) indices.push_back(indices.back());
  return indices;
}

/// GLM-4.1V: `target_fps` frames per second of a video of up to `max_duration` seconds, and as many
/// frames of a longer one, evenly spaced.
Indices sample_at_rate(const Clip& clip, std::int64_t max_duration, double target_fps) {
  constexpr double kAbsurd = 1e6;  // keeps the count an integer for any rate
  const double seconds = clip.seconds;
  const auto longest = static_cast<double>(max_duration);
  const auto count = static_cast<std::int64_t>(
      std::clamp(std::floor(std::min(seconds, longest) * target_fps), 1.0, kAbsurd));
  if (seconds > longest && count >= clip.total_frames) {
    return paired(common::spread_frames(0, clip.last(), clip.total_frames));
  }
  Indices indices;
  for (std::int64_t i = 0; i < count; ++i) {
    const double position = seconds > longest ? common::spaced(0, seconds, count, i) * clip.fps
                                              : static_cast<double>(i) * clip.fps / target_fps;
    indices.push_back(clip.frame_from(position));
  }
  return paired(std::move(indices));
}

/// Pairs of frames per second that GLM-4.6V takes of a video.
double pairs_per_second(double seconds) {
  if (seconds <= 30) return 3;
  return seconds <= 300 ? 1 : 0.5;
}

/// GLM-4.6V: a rate that falls with the length of the video, whatever rate is wanted.
Indices sample_by_length(const Clip& clip, std::int64_t temporal_patch_size) {
  constexpr double kMostSeconds = 2400;
  constexpr std::int64_t kMostFrames = 640;
  const double counted = std::min(clip.seconds, kMostSeconds);
  const double rate = pairs_per_second(counted) * static_cast<double>(temporal_patch_size);
  const std::int64_t count =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(counted * rate), 1, kMostFrames);
  if (clip.total_frames < count) return paired(common::spread_frames(0, clip.last(), count));
  Indices indices;
  double next = 0;
  for (std::int64_t i = 0; i < clip.total_frames; ++i) {
    if (static_cast<double>(i) * (1 / clip.fps) < next) continue;
    next += 1 / rate;
    indices.push_back(i);
    if (next >= std::floor(clip.seconds)) break;
  }
  const auto taken = static_cast<std::int64_t>(indices.size());
  if (taken < count) indices = common::spread_frames(indices.front(), indices.back(), count);
  if (taken > count) indices = common::spread_frames(0, clip.last(), count);
  return paired(std::move(indices));
}

/// Whether the checkpoint's video processor is that of GLM-4.6V.
bool samples_by_length(const checkpoint::HfConfig& files) {
  const auto video = files.video_processor();
  const std::string fallback(known_architecture(files));
  const std::string type = video ? video->string_or("video_processor_type", fallback) : fallback;
  return type.starts_with("Glm46V");
}

}  // namespace

common::GridProcessing read_processing(const checkpoint::HfConfig& files,
                                       const common::GridGeometry& grid,
                                       const MediaOptions& media) {
  common::GridProcessing p{.geometry = grid};
  common::read_grid_processor(files, kClasses, media, p);
  const auto video = files.video_processor();
  const std::int64_t max_duration = video ? common::read_size(*video, "max_duration", 300) : 300;
  const auto resized = [grid](common::PixelRange range, std::int64_t num_frames,
                              std::int64_t height_px, std::int64_t width_px) {
    return common::smart_resize_video(num_frames, height_px, width_px, grid.temporal_patch_size,
                                      grid.resize_factor(), range);
  };
  p.image_size = [=, range = p.limits.image](std::int64_t height_px, std::int64_t width_px) {
    return resized(range, grid.temporal_patch_size, height_px, width_px);
  };
  p.video_size = [=, range = p.limits.video](std::int64_t num_frames, std::int64_t height_px,
                                             std::int64_t width_px) {
    return resized(range, num_frames, height_px, width_px);
  };
  p.sample_frames = [grid, max_duration, by_length = samples_by_length(files)](
                        std::int64_t total, double video_fps, double target_fps) {
    const Clip clip(total, video_fps);
    return by_length ? sample_by_length(clip, grid.temporal_patch_size)
                     : sample_at_rate(clip, max_duration, target_fps);
  };
  p.timestamp = [](double first, double) { return std::floor(first); };
  return p;
}

}  // namespace fovea::glm4v
