// Which frames of a video file the processors of GLM take.
#include "models/glm4v/sampling.h"

#include <algorithm>
#include <cmath>

#include "models/common/frames.h"
#include "models/common/grid/processor_file.h"

namespace fovea::glm4v {

namespace {

using Indices = std::vector<std::int64_t>;

/// Every frame once, and the last one again if that makes their number even.
Indices paired(Indices indices) {
  indices.erase(std::unique(indices.begin(), indices.end()), indices.end());
  if (indices.size() % 2 == 1) indices.push_back(indices.back());
  return indices;
}

/// Pairs of frames per second that GLM-4.6V takes of a video.
double pairs_per_second(double seconds) {
  if (seconds <= 30) return 3;
  return seconds <= 300 ? 1 : 0.5;
}

}  // namespace

Clip::Clip(std::int64_t total_frames, double video_fps)
    : total_frames_(total_frames),
      fps_(video_fps > 0 ? video_fps : common::kUnknownFps),
      seconds_(video_fps > 0 ? static_cast<double>(total_frames) / fps_
                             : std::nearbyint(static_cast<double>(last()) / fps_) + 1) {}

/// The first frame at `position`, counted in frames, or later.
std::int64_t Clip::frame_from(double position) const {
  return static_cast<std::int64_t>(std::min(static_cast<double>(last()), std::ceil(position)));
}

/// `count` frames: those from which on the next multiple of 1 / rate seconds is reached, and as
/// many at even distances where these are more or fewer.
Indices Clip::walk(double rate, std::int64_t count) const {
  if (total_frames_ < count) return paired(common::spread_frames(0, last(), count));
  Indices indices;
  double next = 0;
  for (std::int64_t i = 0; i < total_frames_; ++i) {
    if (static_cast<double>(i) * (1 / fps_) < next) continue;
    next += 1 / rate;
    indices.push_back(i);
    if (next >= std::floor(seconds_)) break;
  }
  const auto taken = static_cast<std::int64_t>(indices.size());
  if (taken < count) indices = common::spread_frames(indices.front(), indices.back(), count);
  if (taken > count) indices = common::spread_frames(0, last(), count);
  return paired(std::move(indices));
}

Indices Clip::sample_at_rate(std::int64_t max_duration, double target_fps) const {
  constexpr double kAbsurd = 1e6;  // keeps the count an integer for any rate
  const auto longest = static_cast<double>(max_duration);
  const auto count = static_cast<std::int64_t>(
      std::clamp(std::floor(std::min(seconds_, longest) * target_fps), 1.0, kAbsurd));
  if (seconds_ > longest && count >= total_frames_) {
    return paired(common::spread_frames(0, last(), total_frames_));
  }
  Indices indices;
  for (std::int64_t i = 0; i < count; ++i) {
    const double position = seconds_ > longest ? common::spaced(0, seconds_, count, i) * fps_
                                               : static_cast<double>(i) * fps_ / target_fps;
    indices.push_back(frame_from(position));
  }
  return paired(std::move(indices));
}

Indices Clip::sample_by_length(std::int64_t temporal_patch_size) const {
  constexpr double kMostSeconds = 2400;
  constexpr std::int64_t kMostFrames = 640;
  const double counted = std::min(seconds_, kMostSeconds);
  const double rate = pairs_per_second(counted) * static_cast<double>(temporal_patch_size);
  const std::int64_t count =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(counted * rate), 1, kMostFrames);
  return walk(rate, count);
}

Indices Clip::sample_up_to(std::int64_t max_frames, std::int64_t max_duration,
                           double target_fps) const {
  const double counted =
      max_duration > 0 ? std::min(seconds_, static_cast<double>(max_duration)) : seconds_;
  const double wanted = std::min(counted * target_fps, static_cast<double>(max_frames));
  return walk(target_fps, std::max<std::int64_t>(1, static_cast<std::int64_t>(wanted)));
}

}  // namespace fovea::glm4v
