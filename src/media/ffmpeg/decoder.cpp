// Two passes over a container: the first counts packets, so that frames can be sampled by index;
// the second decodes in display order, converts only what was sampled and hands it on at once.
#include "media/ffmpeg/decoder.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "media/ffmpeg/converter.h"
#include "media/ffmpeg/frame_memory.h"
#include "media/ffmpeg/reader.h"
#include "media/limits.h"

namespace fovea::media::ffmpeg {

namespace {

constexpr std::int64_t kMaxContainerFrames = 1'000'000;
constexpr int kCodedMargin = 256;  // more than codecs and allocators round a side up by

VideoInfo count_frames(Reader& reader, AVPacket& packet, std::string_view name) {
  VideoInfo info;
  const AVCodecParameters& codec = *reader.stream().codecpar;
  info.width_px = codec.width;
  info.height_px = codec.height;
  if (quarter_turns(reader.stream()) % 2 == 1) std::swap(info.width_px, info.height_px);
  info.decode_bytes = frame_bytes(info.width_px, info.height_px);
  AVRational rate = reader.stream().avg_frame_rate;
  if (rate.num == 0) rate = reader.stream().r_frame_rate;  // Ogg names no average
  info.fps = rate.num > 0 && rate.den > 0 ? av_q2d(rate) : 0.0;
  while (reader.next(packet)) {
    if ((packet.flags & AV_PKT_FLAG_DISCARD) != 0) continue;  // decoded, but outside the edit list
    ++info.num_frames;
    FOVEA_CHECK(info.num_frames <= kMaxContainerFrames, kInvalidArgument, name, ": more than ",
                kMaxContainerFrames, " frames");
  }
  FOVEA_CHECK(info.num_frames > 0, kCorruptData, name, ": the video stream has no frames");
  return info;
}

/// A codec that refuses frames larger than the stream says, before it allocates anything for them.
CodecContext open_codec(const AVStream& stream, FrameMemory& memory, std::string_view name) {
  const AVCodec* const codec = avcodec_find_decoder(stream.codecpar->codec_id);
  FOVEA_CHECK(codec != nullptr, kUnsupported, name, ": no decoder for codec ",
              avcodec_get_name(stream.codecpar->codec_id));
  CodecContext context(avcodec_alloc_context3(codec));
  FOVEA_CHECK(context != nullptr, kOutOfMemory, name, ": out of memory");
  int done = avcodec_parameters_to_context(context.get(), stream.codecpar);
  if (done >= 0) {
    context->thread_count = 1;  // items, not frames, are what runs in parallel
    context->max_pixels = std::int64_t{stream.codecpar->width + kCodedMargin} *
                          (stream.codecpar->height + kCodedMargin);
    memory.watch(*context);
    done = avcodec_open2(context.get(), codec, nullptr);
  }
  FOVEA_CHECK(done >= 0, kUnsupported, name, ": ", codec->name, ": ", error_text(done));
  return context;
}

/// Hands the sampled frames on while frames arrive in display order.
class Collector {
 public:
  Collector(std::span<const std::int64_t> wanted, Converter converter, const FrameSink& sink)
      : wanted_(wanted), converter_(std::move(converter)), sink_(sink) {}

  [[nodiscard]] bool complete() const { return next_ == wanted_.size(); }
  [[nodiscard]] std::int64_t decoded() const { return index_; }

  void add(const AVFrame& frame) {
    if (!complete() && wanted_[next_] == index_) {
      const Image& image = converter_.convert(frame, index_);
      for (; !complete() && wanted_[next_] == index_; ++next_) sink_(image);
    }
    ++index_;
  }

 private:
  std::span<const std::int64_t> wanted_;
  Converter converter_;
  const FrameSink& sink_;
  std::size_t next_ = 0;
  std::int64_t index_ = 0;
};

/// Decodes the packets of a stream, one after the other.
class Decoder {
 public:
  Decoder(const AVStream& stream, std::string_view name, const MediaLimits& limits)
      : stream_(stream),
        name_(name),
        memory_(limits.max_item_bytes / frame_bytes(1, 1) * (frame_bytes(1, 1) - 3)),
        frame_(av_frame_alloc()),
        codec_(open_codec(stream, memory_, name)) {
    FOVEA_CHECK(frame_ != nullptr, kOutOfMemory, name, ": out of memory");
  }

  /// Feeds one packet (null: end of stream) and collects what comes out.
  void decode(const AVPacket* packet, Collector& collector) {
    const int sent = avcodec_send_packet(codec_.get(), packet);
    if (sent != AVERROR_EOF) check(sent, collector.decoded());
    while (!collector.complete()) {
      check_interrupt();
      const int received = avcodec_receive_frame(codec_.get(), frame_.get());
      if (received == AVERROR(EAGAIN) || received == AVERROR_EOF) return;
      check(received, collector.decoded());
      collector.add(*frame_);
      av_frame_unref(frame_.get());
    }
  }

 private:
  void check(int result, std::int64_t index) const {
    FOVEA_CHECK(result >= 0 || !memory_.is_exceeded(), kInvalidArgument, name_,
                ": the frames that decoding frame ", index,
                " needs take more memory than max_item_bytes allows");
    FOVEA_CHECK(result >= 0, kCorruptData, name_, ": frame ", index,
                " cannot be decoded, or is larger than the ", stream_.codecpar->width, "x",
                stream_.codecpar->height, " pixels of the stream: ", error_text(result));
  }

  const AVStream& stream_;
  std::string_view name_;
  FrameMemory memory_;  // outlives the frames below
  Frame frame_;
  CodecContext codec_;
};

void check_indices(std::span<const std::int64_t> wanted, const VideoInfo& info,
                   const MediaLimits& limits, std::string_view name) {
  FOVEA_CHECK(!wanted.empty() && std::ranges::is_sorted(wanted) && wanted.front() >= 0 &&
                  wanted.back() < info.num_frames,
              kInternal, name, ": sampled frames are not within the ", info.num_frames,
              " frames of the video");
  check_num_frames(std::ssize(wanted), name, limits);
}

}  // namespace

VideoInfo decode(const EncodedVideo& video, const FrameSampler& sampler, const MediaLimits& limits,
                 const FrameSink& sink, const Interrupt* interrupt) {
  const InterruptScope scope(interrupt);
  Reader reader(video, limits);
  const Packet packet(av_packet_alloc());
  FOVEA_CHECK(packet != nullptr, kOutOfMemory, video.name, ": out of memory");
  const VideoInfo info = count_frames(reader, *packet, video.name);
  const std::vector<std::int64_t> wanted = sampler(info);
  check_indices(wanted, info, limits, video.name);

  reader.rewind();
  Decoder decoder(reader.stream(), video.name, limits);
  Collector collector(wanted, Converter(quarter_turns(reader.stream()), video.name), sink);
  while (!collector.complete() && reader.next(*packet)) decoder.decode(packet.get(), collector);
  if (!collector.complete()) decoder.decode(nullptr, collector);
  FOVEA_CHECK(collector.complete(), kCorruptData, video.name, ": holds ", info.num_frames,
              " frames, only ", collector.decoded(), " could be decoded, frame ", wanted.back(),
              " is needed");
  return info;
}

}  // namespace fovea::media::ffmpeg
