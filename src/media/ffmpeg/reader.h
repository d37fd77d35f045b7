#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <optional>
#include <string>

#include "fovea/options.h"
#include "media/ffmpeg/handles.h"
#include "media/video.h"

namespace fovea::media::ffmpeg {

/// FFmpeg's text for an error number.
[[nodiscard]] std::string error_text(int error);

/// Most pixels that a frame may have: the limits on pixels, and as many as max_item_bytes decodes.
[[nodiscard]] std::int64_t most_frame_pixels(const MediaLimits& limits);

/// Refuses an MP4 or MOV file that says it has so many samples that FFmpeg's index of them would
/// take more memory than max_item_bytes: it is made when such a file is opened, and a number in a
/// header is enough for it. Files of other kinds pass. Reads the headers of boxes alone.
/// @throws Error(kInvalidArgument) with both numbers, Error(kUnsupported) for compressed headers,
/// which old QuickTime files have, Error(kIo) if the file cannot be read, and as check_interrupt.
void check_mp4_samples(const EncodedVideo& video, const MediaLimits& limits);

/// The packets of the first video stream of a container.
class Reader {
 public:
  /// `video` and `limits` must outlive the reader.
  /// @throws Error(kUnsupported) if the bytes are not a container of the allowed formats or contain
  /// no video, Error(kInvalidArgument) if the bytes or the frame size exceed a limit; as
  /// check_mp4_samples, and as next().
  Reader(const EncodedVideo& video, const MediaLimits& limits);

  /// Moves to the next packet of the stream. @return false at the end, and where what follows in
  /// the container makes no sense.
  /// @throws Error(kIo) with the system's reason and if the file has shrunk,
  /// Error(kInvalidArgument) for a packet beyond max_item_bytes, Error(kOutOfMemory), and as
  /// check_interrupt.
  [[nodiscard]] bool next(AVPacket& packet);
  /// Frames to be shown that an MP4 or MOV file lists after its first `num_read` packets; 0 for
  /// other formats, which have no such list, or have it behind the frames.
  [[nodiscard]] std::int64_t listed_after(std::int64_t num_read) const;
  /// Seconds by which Matroska and WebM end before the duration that their header names, as far as
  /// packets were read; 0 if it names none, and for other formats, whose headers do not say.
  [[nodiscard]] double missing_seconds() const;
  /// Whether the format allows a stream to begin between two key frames.
  [[nodiscard]] bool may_begin_anywhere() const;
  /// Goes back to the first packet. Where timestamps may jump, as in MPEG-TS and Ogg, or seeking
  /// does not lead there, it opens the container again: stream() is another one then. @throws as
  /// the constructor.
  void rewind();
  [[nodiscard]] AVStream& stream() const noexcept { return *stream_; }

 private:
  static int read(void* self, std::uint8_t* buffer, int size) noexcept;
  static std::int64_t seek(void* self, std::int64_t offset, int whence) noexcept;
  static int is_interrupted(void* self) noexcept;
  template <class Action>
  auto guarded(Action&& action) noexcept -> decltype(action());
  int read_some(std::uint8_t* buffer, std::size_t size);
  void open();
  void find_stream();
  [[nodiscard]] bool seek_start();
  [[nodiscard]] bool seek_to(std::int64_t time);
  [[nodiscard]] bool is_format(const char* name) const;
  void note_end(const AVPacket& packet);
  void check_stream(const AVStream& stream) const;
  void rethrow();

  const EncodedVideo& video_;
  const MediaLimits& limits_;
  std::size_t position_ = 0;
  std::size_t bytes_of_packet_ = 0;  // read since the last packet was asked for
  std::exception_ptr failure_;       // of a callback: exceptions must not pass through C frames
  Io io_;
  FormatContext format_;
  AVStream* stream_ = nullptr;            // inside format_
  std::optional<std::int64_t> first_at_;  // place of the first packet in the file
  std::int64_t end_us_ = 0;               // of the packets read, of all streams
};

}  // namespace fovea::media::ffmpeg
