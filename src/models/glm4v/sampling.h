#pragma once

#include <cstdint>
#include <vector>

namespace fovea::glm4v {

/// A video file as the samplers see it. All of them take every index once, and the last one again
/// if that makes their number even. Source: docs/reference/glm4v.md, "Sampled frames".
struct Clip {
  /// @param total_frames at least 1. @param video_fps 0 if unknown: whole seconds then.
  Clip(std::int64_t total_frames, double video_fps);

  std::int64_t last;  ///< index of the last frame
  double fps;
  double seconds;
};

/// GLM-4.1V: `target_fps` frames per second of a video of up to `max_duration` seconds, and as
/// many frames of a longer one, evenly spaced.
[[nodiscard]] std::vector<std::int64_t> sample_at_rate(const Clip& clip, std::int64_t max_duration,
                                                       double target_fps);
/// GLM-4.6V: a rate that falls with the length of the video, whatever rate is wanted.
[[nodiscard]] std::vector<std::int64_t> sample_by_length(const Clip& clip,
                                                         std::int64_t temporal_patch_size);
/// GLM-5: `target_fps` frames per second, at most `max_frames`.
/// @param max_duration seconds that count; 0: all.
[[nodiscard]] std::vector<std::int64_t> sample_up_to(const Clip& clip, std::int64_t max_frames,
                                                     std::int64_t max_duration, double target_fps);

}  // namespace fovea::glm4v
