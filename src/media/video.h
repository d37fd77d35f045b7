#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/options.h"
#include "media/image.h"

namespace fovea::media {

/// An encoded video: a container in memory, or in an open file that is read piece by piece.
struct EncodedVideo {
  std::span<const std::uint8_t> bytes;  ///< of a container in memory; unused if there is a file
  int file = -1;                        ///< descriptor of a regular file, read with pread()
  std::size_t file_bytes = 0;           ///< its size when it was opened
  std::string_view name;                ///< for messages

  [[nodiscard]] std::size_t size_bytes() const { return file < 0 ? bytes.size() : file_bytes; }
};

/// The facts that a container states about its video stream.
struct VideoInfo {
  /// Counted by reading the packets: headers are often wrong. Samples of an MP4 or MOV file that
  /// lie behind its end count, too.
  std::int64_t num_frames = 0;
  /// Frames behind the end of a file that is shorter than its header says, by their duration; not
  /// counted above. One frame less is no sign of that.
  std::int64_t num_cut = 0;
  double fps = 0;             ///< average rate; 0 if the container does not say
  std::int64_t width_px = 0;  ///< of upright frames
  std::int64_t height_px = 0;
  std::size_t decode_bytes = 0;  ///< host memory that decoding takes, frame_bytes() of a frame
  /// Chosen frames that cannot be read, ascending: why the sampler is asked again. Empty before.
  std::vector<std::int64_t> unreadable;
};

/// Host memory that decoding frames of this size takes, whatever their number: 3 bytes per pixel of
/// RGB, and 8 that the decoder holds, which is one frame of 16-bit RGBA, or five of 4:2:0.
[[nodiscard]] constexpr std::size_t frame_bytes(std::int64_t width_px, std::int64_t height_px) {
  return static_cast<std::size_t>(width_px * height_px) * 11;
}

/// Chooses frames: indices in [0, info.num_frames), ascending, repetitions allowed. Is asked a
/// second time, with info.unreadable, if frames that it chose cannot be read: the frames handed on
/// until then count no more. If it insists on an unreadable frame, the call ends with the reason.
using FrameSampler = std::function<std::vector<std::int64_t>(const VideoInfo& info)>;

/// Takes a sampled frame; the image is valid during the call.
using FrameSink = std::function<void(const Image& frame)>;

/// Decodes the sampled frames of a video container (MP4, MOV, Matroska, WebM, AVI, GIF, MPEG-TS,
/// Ogg) to 8-bit RGB with the colour matrix and range that the stream names, turned upright by its
/// display matrix. Only sampled frames are converted, and each is handed on before the next is
/// decoded: memory does not grow with the length of the video. Opens no other file. Checks the
/// interrupt of the current thread (check_interrupt) for every packet and frame. Exceptions of
/// `sampler` and `sink` end the call.
/// Frames are numbered as they come out of the decoder: one per frame, and one per packet that it
/// fails to decode. A file that is cut or cannot be read on ends there.
/// @param sink called for each index of the sampler, in their order. All frames are of one size.
/// @throws Error(kUnsupported) if the video plugin or a codec is missing, or the bytes are no such
/// container; Error(kInvalidArgument) if a limit is exceeded; Error(kCorruptData) if a frame
/// that the sampler insists on cannot be read, or a sampled one has another size than the first,
/// before it is converted; Error(kIo) if the system cannot read the file, or it shrinks.
VideoInfo decode_video(const EncodedVideo& video, const FrameSampler& sampler,
                       const MediaLimits& limits, const FrameSink& sink);

/// Path of the video plugin, or why it cannot be used; for `fovea env`.
[[nodiscard]] std::string video_status();

}  // namespace fovea::media
