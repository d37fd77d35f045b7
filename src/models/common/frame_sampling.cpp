// Which frames stand for a video.
#include "models/common/frame_sampling.h"

namespace fovea::common {

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

}  // namespace fovea::common
