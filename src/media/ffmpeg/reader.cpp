// Demuxing from memory or from an open file. Only formats that hold their media themselves are
// allowed: no playlist, no URL, no other file can be opened from inside a container.
#include "media/ffmpeg/reader.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/interrupt.h"
#include "media/limits.h"

namespace fovea::media::ffmpeg {

namespace {

constexpr int kIoBufferBytes = 64 * 1024;
constexpr const char* kAllowedFormats = "mov,mp4,matroska,webm,avi,gif,mpegts,ogg";

/// The same options for the decoder of every stream, for avformat_find_stream_info.
class StreamOptions {
 public:
  StreamOptions(unsigned num_streams, std::int64_t max_pixels) : options_(num_streams) {
    for (AVDictionary*& options : options_) {
      av_dict_set_int(&options, "max_pixels", max_pixels, 0);
    }
  }
  ~StreamOptions() {
    for (AVDictionary*& options : options_) av_dict_free(&options);
  }
  StreamOptions(const StreamOptions&) = delete;
  StreamOptions& operator=(const StreamOptions&) = delete;
  [[nodiscard]] AVDictionary** data() { return options_.data(); }

 private:
  std::vector<AVDictionary*> options_;
};

}  // namespace

std::string error_text(int error) {
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(error, text, sizeof(text));
  return text;
}

std::int64_t most_frame_pixels(const MediaLimits& limits) {
  const std::size_t pixels = limits.max_item_bytes / frame_bytes(1, 1);
  const std::int64_t most =
      limits.max_frame_pixels > 0 ? limits.max_frame_pixels : limits.max_image_pixels;
  return std::min({most, limits.max_image_pixels, static_cast<std::int64_t>(pixels)});
}

/// Keeps what the action throws for rethrow(), and ends FFmpeg's work.
template <class Action>
auto Reader::guarded(Action&& action) noexcept -> decltype(action()) {
  try {
    return action();
  } catch (...) {
    if (!failure_) failure_ = std::current_exception();
    return AVERROR_EXIT;
  }
}

void Reader::rethrow() {
  if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
}

int Reader::is_interrupted(void* self) noexcept {
  auto& reader = *static_cast<Reader*>(self);
  return reader.guarded([&] {
    check_interrupt();
    return reader.failure_ ? 1 : 0;
  });
}

int Reader::read(void* self, std::uint8_t* buffer, int size) noexcept {
  auto& reader = *static_cast<Reader*>(self);
  return reader.guarded([&] {
    check_interrupt();
    const std::size_t left = reader.video_.size_bytes() - reader.position_;
    if (left == 0) return AVERROR_EOF;
    return reader.read_some(buffer, std::min(left, static_cast<std::size_t>(size)));
  });
}

int Reader::read_some(std::uint8_t* buffer, std::size_t size) {
  bytes_of_packet_ += size;
  FOVEA_CHECK(bytes_of_packet_ <= limits_.max_item_bytes, kInvalidArgument, video_.name,
              ": a header or packet takes more than ", limits_.max_item_bytes, " bytes");
  if (video_.file < 0) {
    std::memcpy(buffer, video_.bytes.data() + position_, size);
    position_ += size;
    return static_cast<int>(size);
  }
  ssize_t got = 0;
  do {
    got = ::pread(video_.file, buffer, size, static_cast<off_t>(position_));
  } while (got < 0 && errno == EINTR);
  FOVEA_CHECK(got >= 0, kIo, video_.name,
              ": cannot read: ", std::generic_category().message(errno));
  FOVEA_CHECK(got > 0, kIo, video_.name, ": file ends after ", position_, " of ", video_.file_bytes,
              " bytes");
  position_ += static_cast<std::size_t>(got);
  return static_cast<int>(got);
}

std::int64_t Reader::seek(void* self, std::int64_t offset, int whence) noexcept {
  auto& reader = *static_cast<Reader*>(self);
  const auto size = static_cast<std::int64_t>(reader.video_.size_bytes());
  if ((whence & AVSEEK_SIZE) != 0) return size;
  if (whence == SEEK_CUR) offset += static_cast<std::int64_t>(reader.position_);
  if (whence == SEEK_END) offset += size;
  if (offset < 0 || offset > size) return AVERROR(EINVAL);
  reader.position_ = static_cast<std::size_t>(offset);
  return offset;
}

Reader::Reader(const EncodedVideo& video, const MediaLimits& limits)
    : video_(video), limits_(limits) {
  FOVEA_CHECK(video.size_bytes() <= limits.max_video_bytes, kInvalidArgument, video.name, ": ",
              video.size_bytes(), " bytes, the limit is ", limits.max_video_bytes);
  check_mp4_samples(video, limits);
  open();
  find_stream();
}

void Reader::open() {
  auto* const buffer = static_cast<std::uint8_t*>(av_malloc(kIoBufferBytes));
  FOVEA_CHECK(buffer != nullptr, kOutOfMemory, video_.name, ": out of memory");
  io_.reset(
      avio_alloc_context(buffer, kIoBufferBytes, 0, this, &Reader::read, nullptr, &Reader::seek));
  FOVEA_CHECK(io_ != nullptr, kOutOfMemory, video_.name, ": out of memory");
  const AVInputFormat* kind = nullptr;
  const int probed = av_probe_input_buffer2(io_.get(), &kind, "", nullptr, 0, 0);
  rethrow();
  FOVEA_CHECK(probed >= 0 && av_match_list(kind->name, kAllowedFormats, ',') != 0, kUnsupported,
              video_.name, ": expected a video container of format ", kAllowedFormats, ", got ",
              probed >= 0 ? kind->name : "no known format");
  AVFormatContext* format = avformat_alloc_context();
  FOVEA_CHECK(format != nullptr, kOutOfMemory, video_.name, ": out of memory");
  format->pb = io_.get();
  format->interrupt_callback = {&Reader::is_interrupted, this};
  format->format_whitelist = av_strdup(kAllowedFormats);
  format->protocol_whitelist = av_strdup("");
  const int opened = avformat_open_input(&format, nullptr, kind, nullptr);  // frees on failure
  if (opened == 0) format_.reset(format);
  rethrow();
  FOVEA_CHECK(opened == 0, kUnsupported, video_.name, ": container of format ", kind->name,
              " cannot be opened: ", error_text(opened));
}

/// Finding out about streams may decode frames: their size is checked before and after.
void Reader::find_stream() {
  for (unsigned i = 0; i < format_->nb_streams; ++i) check_stream(*format_->streams[i]);
  StreamOptions options(format_->nb_streams, most_frame_pixels(limits_));
  const int probed = avformat_find_stream_info(format_.get(), options.data());
  rethrow();
  FOVEA_CHECK(probed >= 0, kCorruptData, video_.name, ": ", error_text(probed));
  const int index = av_find_best_stream(format_.get(), AVMEDIA_TYPE_VIDEO, -1, -1, nullptr, 0);
  FOVEA_CHECK(index >= 0, kUnsupported, video_.name, ": the container holds no video stream");
  stream_ = format_->streams[index];
  const AVCodecParameters& codec = *stream_->codecpar;
  FOVEA_CHECK(codec.width >= 1 && codec.height >= 1, kUnsupported, video_.name,
              ": the video stream names no frame size");
  check_stream(*stream_);
}

void Reader::check_stream(const AVStream& stream) const {
  const std::int64_t width = stream.codecpar->width;
  const std::int64_t height = stream.codecpar->height;
  if (stream.codecpar->codec_type != AVMEDIA_TYPE_VIDEO || width < 1 || height < 1) return;
  check_frame_size(width, height, video_.name, limits_);
  FOVEA_CHECK(frame_bytes(width, height) <= limits_.max_item_bytes, kInvalidArgument, video_.name,
              ": decoding frames of ", width, "x", height, " pixels takes ",
              frame_bytes(width, height), " bytes, the limit is ", limits_.max_item_bytes);
}

bool Reader::next(AVPacket& packet) {
  while (true) {
    check_interrupt();
    av_packet_unref(&packet);
    bytes_of_packet_ = 0;
    const int read = av_read_frame(format_.get(), &packet);
    rethrow();
    FOVEA_CHECK(read != AVERROR(ENOMEM), kOutOfMemory, video_.name, ": out of memory");
    if (read < 0) return false;
    note_end(packet);
    if (packet.stream_index != stream_->index) continue;
    if (!first_at_) first_at_ = packet.pos;
    return true;
  }
}

void Reader::note_end(const AVPacket& packet) {
  const std::int64_t begin = packet.pts != AV_NOPTS_VALUE ? packet.pts : packet.dts;
  if (begin == AV_NOPTS_VALUE) return;
  const AVRational unit = format_->streams[packet.stream_index]->time_base;
  end_us_ = std::max(end_us_, av_rescale_q(begin, unit, AV_TIME_BASE_Q) +
                                  av_rescale_q(packet.duration, unit, AV_TIME_BASE_Q));
}

bool Reader::is_format(const char* name) const {
  return av_match_name(name, format_->iformat->name) != 0;
}

double Reader::missing_seconds() const {
  const bool is_named = format_->duration_estimation_method == AVFMT_DURATION_FROM_STREAM;
  if (!is_named || !is_format("matroska") || format_->duration <= 0) return 0;
  // FFmpeg writes the time at which the last frame ends, mkvmerge the time since the first one
  // begins. Both are read as the former: less may seem to be missing of a file of mkvmerge that
  // begins late, but no whole file seems to be cut.
  return static_cast<double>(format_->duration - end_us_) / AV_TIME_BASE;
}

std::int64_t Reader::listed_after(std::int64_t num_read) const {
  if (!is_format("mov")) return 0;
  std::int64_t count = 0;
  const int listed = avformat_index_get_entries_count(stream_);
  for (std::int64_t i = num_read; i < listed; ++i) {
    const AVIndexEntry* const entry = avformat_index_get_entry(stream_, static_cast<int>(i));
    if ((entry->flags & AVINDEX_DISCARD_FRAME) == 0) ++count;
  }
  return count;
}

bool Reader::may_begin_anywhere() const { return is_format("mpegts") || is_format("matroska"); }

bool Reader::seek_start() {
  if ((format_->iformat->flags & AVFMT_TS_DISCONT) != 0)
    return false;  // no timestamp names a place
  const std::int64_t start = stream_->start_time == AV_NOPTS_VALUE ? 0 : stream_->start_time;
  if (!seek_to(start)) return false;
  // An index may lack the first packet: FFmpeg's of Matroska has no times below 0.
  const Packet packet(av_packet_alloc());
  FOVEA_CHECK(packet != nullptr, kOutOfMemory, video_.name, ": out of memory");
  return next(*packet) && packet->pos == first_at_ && seek_to(start);
}

bool Reader::seek_to(std::int64_t time) {
  const int done = av_seek_frame(format_.get(), stream_->index, time, AVSEEK_FLAG_BACKWARD);
  rethrow();
  return done >= 0;
}

void Reader::rewind() {
  bytes_of_packet_ = 0;
  if (seek_start()) return;
  format_.reset();
  position_ = 0;
  open();
  find_stream();
}

}  // namespace fovea::media::ffmpeg
