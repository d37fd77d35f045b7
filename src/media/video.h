#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/options.h"
#include "media/image.h"

namespace fovea::media {

/// What a container says about its video stream.
struct VideoInfo {
  std::int64_t num_frames = 0;  ///< counted by reading the packets: headers are often wrong
  double fps = 0;               ///< average rate; 0 if the container does not say
  std::int64_t width_px = 0;
  std::int64_t height_px = 0;
};

/// Chooses frames: indices in [0, info.num_frames), ascending, repetitions allowed.
using FrameSampler = std::function<std::vector<std::int64_t>(const VideoInfo& info)>;

/// Frames of a video in the order the sampler asked for, all of one size.
struct VideoFrames {
  VideoInfo info;
  std::vector<Image> frames;
};

/// Decodes the sampled frames of a video container (MP4, MOV, Matroska, WebM, AVI, GIF) to 8-bit
/// RGB with the colour matrix and range that the stream names, turned upright by its display
/// matrix. Only sampled frames are converted. Reads nothing but `bytes`.
/// @param name of the video, for messages.
/// @throws Error(kUnsupported) if the video plugin or a codec is missing, or the bytes are no such
/// container; Error(kInvalidArgument) if a limit is exceeded; Error(kCorruptData) if a sampled
/// frame cannot be decoded.
[[nodiscard]] VideoFrames decode_video(std::span<const std::uint8_t> bytes, std::string_view name,
                                       const FrameSampler& sampler, const MediaLimits& limits);

/// Path of the video plugin, or why it cannot be used; for `fovea env`.
[[nodiscard]] std::string video_status();

}  // namespace fovea::media
