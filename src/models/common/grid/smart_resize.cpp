// Sizes after preprocessing, as the processors of the Qwen and GLM families compute them: every
// quotient is a double, rounded with nearbyint (half to even), never with std::round.
#include "models/common/grid/smart_resize.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"

namespace fovea::common {

namespace {

double as_double(std::int64_t value) { return static_cast<double>(value); }

void check_sides(std::int64_t height_px, std::int64_t width_px) {
  FOVEA_CHECK(height_px >= 1 && width_px >= 1, kInvalidArgument, "image of ", width_px, "x",
              height_px, " pixels has no area");
  const double ratio =
      as_double(std::max(height_px, width_px)) / as_double(std::min(height_px, width_px));
  FOVEA_CHECK(ratio <= kMaxAspectRatio, kInvalidArgument, "image of ", width_px, "x", height_px,
              " pixels: the model takes side ratios up to ", kMaxAspectRatio, ", got ", ratio);
}

/// Multiple of factor at or below value / beta, at least one factor.
std::int64_t shrink(std::int64_t value, double beta, std::int64_t factor) {
  const double steps = std::floor(as_double(value) / beta / as_double(factor));
  return std::max(factor, static_cast<std::int64_t>(steps) * factor);
}

/// Multiple of factor at or above value * beta.
std::int64_t grow(std::int64_t value, double beta, std::int64_t factor) {
  return static_cast<std::int64_t>(std::ceil(as_double(value) * beta / as_double(factor))) * factor;
}

/// The area branches shared by both forms. `frames` is what beta counts, `rounded_frames` what the
/// limits are compared with.
Size2d fit(std::int64_t height_px, std::int64_t width_px, std::int64_t frames,
           std::int64_t rounded_frames, std::int64_t factor, PixelRange range) {
  const Size2d rounded{round_to(height_px, factor), round_to(width_px, factor)};
  const std::int64_t area = rounded_frames * rounded.height_px * rounded.width_px;
  const double volume = as_double(frames) * as_double(height_px) * as_double(width_px);
  if (area > range.max_pixels) {
    const double beta = std::sqrt(volume / as_double(range.max_pixels));
    return {shrink(height_px, beta, factor), shrink(width_px, beta, factor)};
  }
  if (area < range.min_pixels) {  // also where a side was rounded to nothing
    const double beta = std::sqrt(as_double(range.min_pixels) / volume);
    return {grow(height_px, beta, factor), grow(width_px, beta, factor)};
  }
  return rounded;
}

}  // namespace

std::int64_t round_to(std::int64_t value, std::int64_t factor) {
  return static_cast<std::int64_t>(std::nearbyint(as_double(value) / as_double(factor))) * factor;
}

Size2d smart_resize_image(std::int64_t height_px, std::int64_t width_px, std::int64_t factor,
                          PixelRange range) {
  check_sides(height_px, width_px);
  return fit(height_px, width_px, 1, 1, factor, range);
}

Size2d smart_resize_video(std::int64_t num_frames, std::int64_t height_px, std::int64_t width_px,
                          std::int64_t temporal_factor, std::int64_t factor, PixelRange range) {
  FOVEA_CHECK(num_frames >= 1, kInvalidArgument, "a video needs at least 1 frame, got ",
              num_frames);
  check_sides(height_px, width_px);
  const std::int64_t frames = std::max(num_frames, temporal_factor);
  if (height_px < factor || width_px < factor) {
    const double scale =
        std::max(as_double(factor) / as_double(height_px), as_double(factor) / as_double(width_px));
    height_px = static_cast<std::int64_t>(as_double(height_px) * scale);
    width_px = static_cast<std::int64_t>(as_double(width_px) * scale);
  }
  return fit(height_px, width_px, frames, round_to(frames, temporal_factor), factor, range);
}

}  // namespace fovea::common
