#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fovea/options.h"

namespace fovea::media {

/// Refuses sizes beyond `limits`, from a file header or given for a plan. Does not check for sizes
/// below 1.
/// @param name of the image or video, for the message.
/// @throws Error(kInvalidArgument) with both numbers.
void check_image_size(std::int64_t width_px, std::int64_t height_px, std::string_view name,
                      const MediaLimits& limits);

/// Refuses an image, or a frame of a video, whose decoding would take more host memory than
/// `limits` allows. @throws as above.
void check_decode_bytes(std::size_t decode_bytes, std::string_view name, const MediaLimits& limits);

/// Refuses videos of more frames, after sampling, than `limits` allows. @throws as above.
void check_num_frames(std::int64_t num_frames, std::string_view name, const MediaLimits& limits);

/// Refuses frames of a video of this size. @throws as above.
void check_frame_size(std::int64_t width_px, std::int64_t height_px, std::string_view name,
                      const MediaLimits& limits);

/// Refuses videos whose frames after sampling have more pixels together than `limits` allows, or
/// are of a size that is refused. @throws as above.
void check_video_size(std::int64_t num_frames, std::int64_t width_px, std::int64_t height_px,
                      std::string_view name, const MediaLimits& limits);

/// Refuses items that have more patches, after resizing, than `limits` allows.
/// @param at_once of them, those that the tower sees together. @throws as above.
void check_num_patches(std::int64_t num_patches, std::int64_t at_once, std::string_view name,
                       const MediaLimits& limits);

}  // namespace fovea::media
