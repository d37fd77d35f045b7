#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "fovea/options.h"
#include "media/ffmpeg/handles.h"
#include "media/video.h"

namespace fovea::media::ffmpeg {

/// FFmpeg's text for an error number.
[[nodiscard]] std::string error_text(int error);

/// The packets of the first video stream of a container in memory.
class Reader {
 public:
  /// `bytes` must outlive the reader.
  /// @throws Error(kUnsupported) if the bytes are not a container of the allowed formats or contain
  /// no video, Error(kInvalidArgument) if the frame size exceeds a limit.
  Reader(std::span<const std::uint8_t> bytes, std::string_view name, const MediaLimits& limits);

  /// Moves to the next packet of the stream. @return false at the end.
  [[nodiscard]] bool next(AVPacket& packet);
  /// Goes back to the first packet.
  void rewind();
  [[nodiscard]] AVStream& stream() const noexcept { return *stream_; }

 private:
  static int read(void* self, std::uint8_t* buffer, int size);
  static std::int64_t seek(void* self, std::int64_t offset, int whence);
  void open();

  std::span<const std::uint8_t> bytes_;
  std::string name_;
  std::size_t position_ = 0;
  Io io_;
  FormatContext format_;
  AVStream* stream_ = nullptr;  // inside format_
};

}  // namespace fovea::media::ffmpeg
