#pragma once

#include <cstddef>

#include "media/ffmpeg/handles.h"

namespace fovea::media::ffmpeg {

/// Counts the frames that a decoder holds, references included, and refuses to hold more than a
/// number of bytes. Codecs with an allocator of their own (AV1) are bounded by max_pixels alone.
class FrameMemory {
 public:
  explicit FrameMemory(std::size_t max_bytes) : max_bytes_(max_bytes) {}
  FrameMemory(const FrameMemory&) = delete;
  FrameMemory& operator=(const FrameMemory&) = delete;

  /// Takes over the allocation of frames. Call it before the codec is opened; this object must
  /// outlive the codec and its frames.
  void watch(AVCodecContext& codec);

  /// Whether a frame has been refused.
  [[nodiscard]] bool is_exceeded() const noexcept { return is_exceeded_; }

 private:
  struct Held;
  static int allocate(AVCodecContext* codec, AVFrame* frame, int flags) noexcept;
  static void release(void* held, std::uint8_t* data) noexcept;
  int count(AVFrame& frame, std::size_t bytes) noexcept;

  std::size_t max_bytes_;
  std::size_t held_bytes_ = 0;
  bool is_exceeded_ = false;
};

}  // namespace fovea::media::ffmpeg
