#pragma once

#include <cstdint>

namespace fovea::common {

/// Area limits of a resize, in the unit of the form used (pixels, or frames times pixels).
struct PixelRange {
  std::int64_t min_pixels = 0;
  std::int64_t max_pixels = 0;
};

struct Size2d {
  std::int64_t height_px = 0;
  std::int64_t width_px = 0;
  friend bool operator==(const Size2d&, const Size2d&) = default;
};

/// The multiple of `factor` next to `value`, half to even.
[[nodiscard]] std::int64_t round_to(std::int64_t value, std::int64_t factor);

/// Largest ratio of the sides that the processors of the Qwen and GLM families accept.
inline constexpr std::int64_t kMaxAspectRatio = 200;

/// Size of a still image after preprocessing: sides are multiples of `factor`, the area lies
/// within `range` where the aspect ratio allows it, and the ratio changes as little as that
/// permits. Divisions are done in double and rounded half to even, as the reference does.
/// @throws Error(kInvalidArgument) if the ratio of the sides exceeds kMaxAspectRatio.
/// Source: docs/reference/qwen_glm.md, "Resized sizes".
[[nodiscard]] Size2d smart_resize_image(std::int64_t height_px, std::int64_t width_px,
                                        std::int64_t factor, PixelRange range);

/// As smart_resize_image for the frames of a video; `range` limits frames * height * width.
/// @param num_frames sampled frames; fewer than temporal_factor count as temporal_factor.
/// Source: docs/reference/qwen_glm.md, "Resized sizes".
[[nodiscard]] Size2d smart_resize_video(std::int64_t num_frames, std::int64_t height_px,
                                        std::int64_t width_px, std::int64_t temporal_factor,
                                        std::int64_t factor, PixelRange range);

}  // namespace fovea::common
