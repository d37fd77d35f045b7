#pragma once

#include "media/video.h"

namespace fovea::media::ffmpeg {

/// Body of media::decode_video.
[[nodiscard]] VideoFrames decode(std::span<const std::uint8_t> bytes, std::string_view name,
                                 const FrameSampler& sampler, const MediaLimits& limits);

}  // namespace fovea::media::ffmpeg
