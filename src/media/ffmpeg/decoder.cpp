// Two passes over a container: the first counts packets, so that frames can be sampled by index;
// the second decodes in display order, converts only what was sampled and hands it on at once. A
// third one follows if a sampled frame is lost: with fewer frames, each may be resized otherwise.
// At the end the only symbol of the plugin.
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/check.h"
#include "core/interrupt.h"
#include "media/ffmpeg/converter.h"
#include "media/ffmpeg/frame_memory.h"
#include "media/ffmpeg/handles.h"
#include "media/ffmpeg/reader.h"
#include "media/limits.h"
#include "media/video_abi.h"

namespace fovea::media::ffmpeg {

namespace {

constexpr std::int64_t kMaxContainerFrames = 1'000'000;
constexpr int kCodedMargin = 256;  // more than codecs and allocators round a side up by

/// The contents of a stream, as its packets have them.
struct Content {
  VideoInfo info;
  /// A stream that was cut out of another one may begin anywhere: whether packets before the first
  /// key frame are of no use.
  bool begins_at_key = false;
};

VideoInfo describe(const AVStream& stream) {
  VideoInfo info{.width_px = stream.codecpar->width, .height_px = stream.codecpar->height};
  if (quarter_turns(stream) % 2 == 1) std::swap(info.width_px, info.height_px);
  info.decode_bytes = frame_bytes(info.width_px, info.height_px);
  AVRational rate = stream.avg_frame_rate;
  if (rate.num == 0) rate = stream.r_frame_rate;  // Ogg names no average
  info.fps = rate.num > 0 && rate.den > 0 ? av_q2d(rate) : 0.0;
  return info;
}

bool is_key(const AVPacket& packet) { return (packet.flags & AV_PKT_FLAG_KEY) != 0; }

/// Whether a packet is decoded, but not shown: outside the edit list, or a frame of VP8 that others
/// refer to, which has a packet of its own. Source: RFC 6386, 9.1 (show_frame).
bool is_hidden(const AVPacket& packet, const AVStream& stream) {
  constexpr std::uint8_t kShowFrame = 0x10;
  if ((packet.flags & AV_PKT_FLAG_DISCARD) != 0) return true;
  return stream.codecpar->codec_id == AV_CODEC_ID_VP8 && packet.size > 0 &&
         (packet.data[0] & kShowFrame) == 0;
}

/// Whether the decoder may make grey images of frames whose references are missing, as that of
/// H.265 does in FFmpeg 5.1. FFmpeg 8 leaves frames before the first key frame out.
bool makes_up_references(const AVStream& stream) {
  return stream.codecpar->codec_id == AV_CODEC_ID_HEVC;
}

Content count_frames(Reader& reader, AVPacket& packet, std::string_view name) {
  Content content{.info = describe(reader.stream())};
  std::int64_t& count = content.info.num_frames;
  const auto check_count = [&] {
    FOVEA_CHECK(count <= kMaxContainerFrames, kInvalidArgument, name, ": more than ",
                kMaxContainerFrames, " frames");
  };
  std::int64_t num_packets = 0;
  for (; reader.next(packet); ++num_packets) {
    const bool skips = reader.may_begin_anywhere() || makes_up_references(reader.stream());
    const bool begins = skips && is_key(packet) && !std::exchange(content.begins_at_key, true);
    if (begins && reader.may_begin_anywhere()) count = 0;
    if (!is_hidden(packet, reader.stream())) ++count;
    check_count();
  }
  FOVEA_CHECK(count > 0, kCorruptData, name, ": the video stream has no frames");
  count += reader.listed_after(num_packets);
  check_count();
  const double cut = std::round(reader.missing_seconds() * content.info.fps);
  if (cut >= 2 && cut <= kMaxContainerFrames) {
    content.info.num_cut = static_cast<std::int64_t>(cut);
  }
  return content;
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

/// Hands the sampled frames on while frames arrive in display order, as long as none is lost.
class Collector {
 public:
  Collector(std::span<const std::int64_t> wanted, Converter converter, const FrameSink& sink)
      : wanted_(wanted), converter_(std::move(converter)), sink_(sink) {}

  [[nodiscard]] bool complete() const { return next_ == wanted_.size(); }
  [[nodiscard]] std::int64_t index() const { return index_; }  // of the frame that comes next

  void add(const AVFrame& frame) {
    const bool is_wanted = !complete() && wanted_[next_] == index_;
    if (is_wanted && !reason_) {
      const Image& image = converter_.convert(frame, index_);
      for (std::size_t i = next_; i < wanted_.size() && wanted_[i] == index_; ++i) sink_(image);
    }
    go_on();
  }

  /// The next frame cannot be decoded. @param reason makes the text of an error.
  template <class Reason>
  void lose(const Reason& reason) {
    if (!complete() && wanted_[next_] == index_) {
      unreadable_.push_back(index_);
      if (!reason_) reason_.emplace(ErrorCode::kCorruptData, reason());
    }
    go_on();
  }

  /// There are no more frames.
  template <class Reason>
  void end(const Reason& reason) {
    while (!complete()) {
      index_ = wanted_[next_];
      lose(reason);
    }
  }

  /// Why the first of the frames that are lost is. Absent: all were handed on.
  [[nodiscard]] const std::optional<Error>& reason() const { return reason_; }
  [[nodiscard]] const std::vector<std::int64_t>& unreadable() const { return unreadable_; }

 private:
  void go_on() {
    while (!complete() && wanted_[next_] == index_) ++next_;
    ++index_;
  }

  std::span<const std::int64_t> wanted_;
  Converter converter_;
  const FrameSink& sink_;
  std::size_t next_ = 0;
  std::int64_t index_ = 0;
  std::vector<std::int64_t> unreadable_;
  std::optional<Error> reason_;
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
    const bool is_shown = packet == nullptr || !is_hidden(*packet, stream_);
    const int sent = avcodec_send_packet(codec_.get(), packet);
    if (sent < 0 && sent != AVERROR_EOF) fail(sent, is_shown, collector);
    while (!collector.complete()) {
      check_interrupt();
      const int received = avcodec_receive_frame(codec_.get(), frame_.get());
      if (received == AVERROR(EAGAIN) || received == AVERROR_EOF) return;
      if (received < 0) {
        fail(received, is_shown, collector);
        if (packet != nullptr) return;
        continue;  // others may still come out at the end
      }
      collector.add(*frame_);
      av_frame_unref(frame_.get());
    }
  }

 private:
  /// A failure to decode costs a frame, if that would have been shown; one of memory is an error.
  void fail(int result, bool is_shown, Collector& collector) const {
    FOVEA_CHECK(!memory_.is_exceeded(), kInvalidArgument, name_,
                ": the frames that decoding frame ", collector.index(),
                " needs take more memory than max_item_bytes allows");
    FOVEA_CHECK(result != AVERROR(ENOMEM), kOutOfMemory, name_, ": out of memory");
    if (!is_shown) return;
    collector.lose([&] {
      return cat(name_, ": frame ", collector.index(), " cannot be decoded, or is larger than the ",
                 stream_.codecpar->width, "x", stream_.codecpar->height,
                 " pixels of the stream: ", error_text(result));
    });
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

/// One video on its way from packets to sampled frames.
class Clip {
 public:
  Clip(const EncodedVideo& video, const MediaLimits& limits, const FrameSink& sink)
      : name_(video.name),
        limits_(limits),
        sink_(sink),
        reader_(video, limits),
        packet_(av_packet_alloc()) {
    FOVEA_CHECK(packet_ != nullptr, kOutOfMemory, name_, ": out of memory");
    content_ = count_frames(reader_, *packet_, name_);
  }

  VideoInfo run(const FrameSampler& sampler) {
    VideoInfo& info = content_.info;
    std::optional<Error> reason = hand_on(choose(sampler), info.unreadable);
    if (!reason) return info;
    const std::vector<std::int64_t> others = choose(sampler);
    const bool insists = std::ranges::any_of(info.unreadable, [&](std::int64_t index) {
      return std::ranges::binary_search(others, index);
    });
    std::vector<std::int64_t> more;
    if (!insists) reason = hand_on(others, more);
    if (reason) throw *reason;
    return info;
  }

 private:
  [[nodiscard]] std::vector<std::int64_t> choose(const FrameSampler& sampler) const {
    std::vector<std::int64_t> wanted = sampler(content_.info);
    check_indices(wanted, content_.info, limits_, name_);
    return wanted;
  }

  /// Decodes from the start. @param unreadable receives the frames that are lost.
  /// @return why the first of them is.
  [[nodiscard]] std::optional<Error> hand_on(std::span<const std::int64_t> wanted,
                                             std::vector<std::int64_t>& unreadable) {
    reader_.rewind();
    Decoder decoder(reader_.stream(), name_, limits_);
    Collector collector(wanted, Converter(quarter_turns(reader_.stream()), name_), sink_);
    bool has_begun = !content_.begins_at_key;
    while (!collector.complete() && reader_.next(*packet_)) {
      has_begun = has_begun || is_key(*packet_);
      if (has_begun) decoder.decode(packet_.get(), collector);
    }
    if (!collector.complete()) decoder.decode(nullptr, collector);
    const std::int64_t num_decoded = collector.index();
    collector.end([&] {
      return cat(name_, ": holds ", content_.info.num_frames, " frames, only ", num_decoded,
                 " could be decoded, frame ", wanted.back(), " is needed");
    });
    unreadable = collector.unreadable();
    return collector.reason();
  }

  std::string_view name_;
  const MediaLimits& limits_;
  const FrameSink& sink_;
  Reader reader_;
  Packet packet_;
  Content content_;
};

/// Body of media::decode_video. @param interrupt that the thread works under meanwhile; may be
/// null.
VideoInfo decode(const EncodedVideo& video, const FrameSampler& sampler, const MediaLimits& limits,
                 const FrameSink& sink, const Interrupt* interrupt) {
  const InterruptScope scope(interrupt);
  return Clip(video, limits, sink).run(sampler);
}

[[gnu::section(".note.fovea"), gnu::aligned(4), gnu::used]] constexpr PluginNote kNote{
    .build = kVideoPluginBuild};

}  // namespace

}  // namespace fovea::media::ffmpeg

extern "C" __attribute__((visibility("default"))) const fovea::media::VideoPlugin*
fovea_video_plugin() {
  av_log_set_level(AV_LOG_QUIET);  // complaints come back as errors, not on stderr
  static const fovea::media::VideoPlugin plugin{
      .libraries = LIBAVFORMAT_IDENT ", " LIBAVCODEC_IDENT,
      .decode = &fovea::media::ffmpeg::decode};
  return &plugin;
}
