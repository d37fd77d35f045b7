// Demuxing from memory. Only formats that hold their media themselves are allowed: no playlist, no
// URL, no other file can be opened from inside a container.
#include "media/ffmpeg/reader.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"
#include "media/limits.h"

namespace fovea::media::ffmpeg {

namespace {

constexpr int kIoBufferBytes = 64 * 1024;
constexpr const char* kAllowedFormats = "mov,mp4,matroska,webm,avi,gif";

}  // namespace

std::string error_text(int error) {
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(error, text, sizeof(text));
  return text;
}

int Reader::read(void* self, std::uint8_t* buffer, int size) {
  auto& reader = *static_cast<Reader*>(self);
  const std::size_t left = reader.bytes_.size() - reader.position_;
  if (left == 0) return AVERROR_EOF;
  const std::size_t count = std::min(left, static_cast<std::size_t>(size));
  std::memcpy(buffer, reader.bytes_.data() + reader.position_, count);
  reader.position_ += count;
  return static_cast<int>(count);
}

std::int64_t Reader::seek(void* self, std::int64_t offset, int whence) {
  auto& reader = *static_cast<Reader*>(self);
  const auto size = static_cast<std::int64_t>(reader.bytes_.size());
  if ((whence & AVSEEK_SIZE) != 0) return size;
  if (whence == SEEK_CUR) offset += static_cast<std::int64_t>(reader.position_);
  if (whence == SEEK_END) offset += size;
  if (offset < 0 || offset > size) return AVERROR(EINVAL);
  reader.position_ = static_cast<std::size_t>(offset);
  return offset;
}

Reader::Reader(std::span<const std::uint8_t> bytes, std::string_view name,
               const MediaLimits& limits)
    : bytes_(bytes), name_(name) {
  open();
  const AVCodecParameters& codec = *stream_->codecpar;
  FOVEA_CHECK(codec.width >= 1 && codec.height >= 1, kUnsupported, name_,
              ": the video stream names no frame size");
  check_image_size(codec.width, codec.height, name_, limits);
}

void Reader::open() {
  auto* const buffer = static_cast<std::uint8_t*>(av_malloc(kIoBufferBytes));
  FOVEA_CHECK(buffer != nullptr, kOutOfMemory, name_, ": out of memory");
  io_.reset(
      avio_alloc_context(buffer, kIoBufferBytes, 0, this, &Reader::read, nullptr, &Reader::seek));
  AVFormatContext* format = avformat_alloc_context();
  FOVEA_CHECK(io_ != nullptr && format != nullptr, kOutOfMemory, name_, ": out of memory");
  format->pb = io_.get();
  format->format_whitelist = av_strdup(kAllowedFormats);
  format->protocol_whitelist = av_strdup("");
  const int opened = avformat_open_input(&format, nullptr, nullptr, nullptr);  // frees on failure
  FOVEA_CHECK(opened == 0, kUnsupported, name_, ": not a video container of a supported format (",
              kAllowedFormats, "): ", error_text(opened));
  format_.reset(format);
  const int probed = avformat_find_stream_info(format_.get(), nullptr);
  FOVEA_CHECK(probed >= 0, kCorruptData, name_, ": ", error_text(probed));
  const int index = av_find_best_stream(format_.get(), AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
  FOVEA_CHECK(index >= 0, kUnsupported, name_, ": the container holds no video stream");
  stream_ = format_->streams[index];
}

bool Reader::next(AVPacket& packet) {
  while (true) {
    av_packet_unref(&packet);
    const int read = av_read_frame(format_.get(), &packet);
    if (read == AVERROR_EOF) return false;
    FOVEA_CHECK(read >= 0, kCorruptData, name_, ": ", error_text(read));
    if (packet.stream_index == stream_->index) return true;
  }
}

void Reader::rewind() {
  const std::int64_t start = stream_->start_time == AV_NOPTS_VALUE ? 0 : stream_->start_time;
  const int done = av_seek_frame(format_.get(), stream_->index, start, AVSEEK_FLAG_BACKWARD);
  FOVEA_CHECK(done >= 0, kCorruptData, name_,
              ": cannot go back to the first frame: ", error_text(done));
}

}  // namespace fovea::media::ffmpeg
