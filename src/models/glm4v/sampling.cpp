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

/// `count` frames: those from which on the next multiple of 1 / rate seconds is reached, and as
/// many at even distances where these are more or fewer.
Indices walk(const Clip& clip, double rate, std::int64_t count) {
  if (clip.last + 1 < count) return paired(common::spread_frames(0, clip.last, count));
  Indices indices;
  double next = 0;
  for (std::int64_t i = 0; i <= clip.last; ++i) {
    if (static_cast<double>(i) * (1 / clip.fps) < next) continue;
    next += 1 / rate;
    indices.push_back(i);
    if (next >= std::floor(clip.seconds)) break;
  }
  const auto taken = static_cast<std::int64_t>(indices.size());
  if (taken < count) indices = common::spread_frames(indices.front(), indices.back(), count);
  if (taken > count) indices = common::spread_frames(0, clip.last, count);
  return paired(std::move(indices));
}

}  // namespace

Clip::Clip(std::int64_t total_frames, double video_fps)
    : last(total_frames - 1),
      fps(video_fps > 0 ? video_fps : common::kUnknownFps),
      seconds(video_fps > 0 ? static_cast<double>(total_frames) / fps
                            : std::nearbyint(static_cast<double>(last) / fps) + 1) {}

Indices sample_at_rate(const Clip& clip, std::int64_t max_duration, double target_fps) {
  constexpr double kAbsurd = 1e6;  // keeps the count an integer for any rate
  const auto longest = static_cast<double>(max_duration);
  const auto last = static_cast<double>(clip.last);
  const auto count = static_cast<std::int64_t>(
      std::clamp(std::floor(std::min(clip.seconds, longest) * target_fps), 1.0, kAbsurd));
  if (clip.seconds > longest && count > clip.last) {
    return paired(common::spread_frames(0, clip.last, clip.last + 1));
  }
  Indices indices;
  for (std::int64_t i = 0; i < count; ++i) {
    const double position = clip.seconds > longest
                                ? common::spaced(0, clip.seconds, count, i) * clip.fps
                                : static_cast<double>(i) * clip.fps / target_fps;
    indices.push_back(static_cast<std::int64_t>(std::min(last, std::ceil(position))));
  }
  return paired(std::move(indices));
}

Indices sample_by_length(const Clip& clip, std::int64_t temporal_patch_size) {
  constexpr double kMostSeconds = 2400;
  constexpr std::int64_t kMostFrames = 640;
  const double counted = std::min(clip.seconds, kMostSeconds);
  const double rate = pairs_per_second(counted) * static_cast<double>(temporal_patch_size);
  const std::int64_t count =
      std::clamp<std::int64_t>(static_cast<std::int64_t>(counted * rate), 1, kMostFrames);
  return walk(clip, rate, count);
}

Indices sample_up_to(const Clip& clip, std::int64_t max_frames, std::int64_t max_duration,
                     double target_fps) {
  const double counted =
      max_duration > 0 ? std::min(clip.seconds, static_cast<double>(max_duration)) : clip.seconds;
  const double wanted = std::min(counted * target_fps, static_cast<double>(max_frames));
  return walk(clip, target_fps, std::max<std::int64_t>(1, static_cast<std::int64_t>(wanted)));
}

}  // namespace fovea::glm4v
