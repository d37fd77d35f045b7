// Checks of the limits of MediaLimits on sizes.
#include "media/limits.h"

#include <algorithm>
#include <optional>

#include "core/check.h"
#include "fovea/tower/core/shape.h"

namespace fovea::media {
namespace {

/// Applies whatever the limits are: byte counts stay far from overflow.
constexpr std::int64_t kMostPixels = std::int64_t{1} << 40;

}  // namespace

void check_image_size(std::int64_t width_px, std::int64_t height_px, std::string_view name,
                      const MediaLimits& limits) {
  FOVEA_CHECK(std::max(width_px, height_px) <= limits.max_image_side_px, kInvalidArgument, name,
              ": expected sides of at most ", limits.max_image_side_px, " pixels, got ", width_px,
              " x ", height_px);
  const std::optional<std::int64_t> num_pixels = checked_mul(width_px, height_px);
  const std::int64_t most = std::min(limits.max_image_pixels, kMostPixels);
  FOVEA_CHECK(num_pixels && *num_pixels <= most, kInvalidArgument, name, ": expected at most ",
              most, " pixels, got ", width_px, " x ", height_px);
}

void check_decode_bytes(std::size_t decode_bytes, std::string_view name,
                        const MediaLimits& limits) {
  FOVEA_CHECK(decode_bytes <= limits.max_item_bytes, kInvalidArgument, name,
              ": expected an image that takes at most ", limits.max_item_bytes,
              " bytes to decode, got ", decode_bytes);
}

void check_num_frames(std::int64_t num_frames, std::string_view name, const MediaLimits& limits) {
  FOVEA_CHECK(num_frames <= limits.max_video_frames, kInvalidArgument, name, ": expected at most ",
              limits.max_video_frames, " frames, got ", num_frames);
}

void check_frame_size(std::int64_t width_px, std::int64_t height_px, std::string_view name,
                      const MediaLimits& limits) {
  check_image_size(width_px, height_px, name, limits);
  const std::int64_t most = limits.max_frame_pixels;
  FOVEA_CHECK(most == 0 || width_px * height_px <= most, kInvalidArgument, name,
              ": expected frames of at most ", most, " pixels, got ", width_px, " x ", height_px);
}

void check_video_size(std::int64_t num_frames, std::int64_t width_px, std::int64_t height_px,
                      std::string_view name, const MediaLimits& limits) {
  check_frame_size(width_px, height_px, name, limits);
  if (limits.max_video_pixels == 0) return;
  const std::optional<std::int64_t> num_pixels = checked_mul(width_px * height_px, num_frames);
  FOVEA_CHECK(num_pixels && *num_pixels <= limits.max_video_pixels, kInvalidArgument, name,
              ": expected at most ", limits.max_video_pixels, " pixels in all frames, got ",
              num_frames, " of ", width_px, " x ", height_px);
}

void check_num_patches(std::int64_t num_patches, std::int64_t at_once, std::string_view name,
                       const MediaLimits& limits) {
  const bool is_of_all = limits.max_patches_per_item > 0;
  const std::int64_t most = is_of_all ? limits.max_patches_per_item : limits.max_patches_at_once;
  const std::int64_t got = is_of_all ? num_patches : at_once;
  FOVEA_CHECK(got <= most, kInvalidArgument, name, ": expected at most ", most,
              " patches after resizing, got ", got);
}

}  // namespace fovea::media
