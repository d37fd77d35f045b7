// Two passes over a container: the first counts packets, so that frames can be sampled by index;
// the second decodes in display order and converts only what was sampled.
#include "media/ffmpeg/decoder.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/check.h"
#include "media/ffmpeg/reader.h"
#include "media/limits.h"

namespace fovea::media::ffmpeg {

namespace {

constexpr std::int64_t kMaxContainerFrames = 1'000'000;
constexpr int kRowPaddingBytes = 64;  // swscale writes a little beyond the end of a row

/// Quarter turns, clockwise, that put the stream's images upright.
int quarter_turns(const AVStream& stream) {
  const auto* const matrix = reinterpret_cast<const std::int32_t*>(
      av_stream_get_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, nullptr));
  if (matrix == nullptr) return 0;
  const double degrees = av_display_rotation_get(matrix);  // counter-clockwise, or NaN
  if (std::isnan(degrees)) return 0;
  return static_cast<int>((std::lround(-degrees / 90.0) % 4 + 4) % 4);
}

Image turned_once(const Image& image) {
  Image result{image.height_px, image.width_px, std::vector<std::uint8_t>(image.rgb.size())};
  for (std::int64_t y = 0; y < result.height_px; ++y) {
    for (std::int64_t x = 0; x < result.width_px; ++x) {
      const std::int64_t from = ((image.height_px - 1 - x) * image.width_px + y) * 3;
      const std::int64_t to = (y * result.width_px + x) * 3;
      std::copy_n(image.rgb.begin() + from, 3, result.rgb.begin() + to);
    }
  }
  return result;
}

VideoInfo count_frames(Reader& reader, AVPacket& packet, std::string_view name) {
  VideoInfo info;
  const AVCodecParameters& codec = *reader.stream().codecpar;
  info.width_px = codec.width;
  info.height_px = codec.height;
  const AVRational rate = reader.stream().avg_frame_rate;
  info.fps = rate.num > 0 && rate.den > 0 ? av_q2d(rate) : 0.0;
  while (reader.next(packet)) {
    ++info.num_frames;
    FOVEA_CHECK(info.num_frames <= kMaxContainerFrames, kInvalidArgument, name, ": more than ",
                kMaxContainerFrames, " frames");
  }
  FOVEA_CHECK(info.num_frames > 0, kCorruptData, name, ": the video stream has no frames");
  return info;
}

CodecContext open_codec(const AVStream& stream, std::string_view name) {
  const AVCodec* const codec = avcodec_find_decoder(stream.codecpar->codec_id);
  FOVEA_CHECK(codec != nullptr, kUnsupported, name, ": no decoder for codec ",
              avcodec_get_name(stream.codecpar->codec_id));
  CodecContext context(avcodec_alloc_context3(codec));
  FOVEA_CHECK(context != nullptr, kOutOfMemory, name, ": out of memory");
  int done = avcodec_parameters_to_context(context.get(), stream.codecpar);
  if (done >= 0) {
    context->thread_count = 1;  // items, not frames, are what runs in parallel
    done = avcodec_open2(context.get(), codec, nullptr);
  }
  FOVEA_CHECK(done >= 0, kUnsupported, name, ": ", codec->name, ": ", error_text(done));
  return context;
}

/// Converts decoded frames to RGB; keeps its conversion tables from frame to frame.
class Converter {
 public:
  explicit Converter(std::string_view name) : name_(name) {}

  [[nodiscard]] Image convert(const AVFrame& frame) {
    prepare(frame);
    const auto width = static_cast<std::size_t>(frame.width);
    const auto height = static_cast<std::size_t>(frame.height);
    const std::size_t stride = (width * 3 + 15) / 16 * 16;
    std::vector<std::uint8_t> padded(stride * height + kRowPaddingBytes);
    std::uint8_t* const rows[4] = {padded.data()};
    const int strides[4] = {static_cast<int>(stride)};
    sws_scale(scaler_.get(), frame.data, frame.linesize, 0, frame.height, rows, strides);
    Image image{frame.width, frame.height, std::vector<std::uint8_t>(width * height * 3)};
    for (std::size_t y = 0; y < height; ++y) {
      std::memcpy(image.rgb.data() + y * width * 3, padded.data() + y * stride, width * 3);
    }
    return image;
  }

 private:
  void prepare(const AVFrame& frame) {
    scaler_.reset(sws_getCachedContext(
        scaler_.release(), frame.width, frame.height, static_cast<AVPixelFormat>(frame.format),
        frame.width, frame.height, AV_PIX_FMT_RGB24,
        SWS_BILINEAR | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT, nullptr, nullptr, nullptr));
    FOVEA_CHECK(scaler_ != nullptr, kUnsupported, name_, ": no conversion to RGB from ",
                av_get_pix_fmt_name(static_cast<AVPixelFormat>(frame.format)));
    // The stream's matrix; BT.601 where it does not say, as swscale assumes.
    const int matrix =
        frame.colorspace == AVCOL_SPC_UNSPECIFIED ? SWS_CS_DEFAULT : frame.colorspace;
    const int* const from = sws_getCoefficients(matrix);
    const int full_range = frame.color_range == AVCOL_RANGE_JPEG ? 1 : 0;
    sws_setColorspaceDetails(scaler_.get(), from, full_range, sws_getCoefficients(SWS_CS_DEFAULT),
                             1, 0, 1 << 16, 1 << 16);
  }

  std::string_view name_;
  Scaler scaler_;
};

/// Collects the sampled frames while frames arrive in display order.
class Collector {
 public:
  Collector(std::span<const std::int64_t> wanted, int turns, std::string_view name)
      : wanted_(wanted), turns_(turns), converter_(name) {}

  [[nodiscard]] bool complete() const { return next_ == wanted_.size(); }
  [[nodiscard]] std::vector<Image> take() { return std::move(images_); }
  [[nodiscard]] std::int64_t decoded() const { return index_; }

  void add(const AVFrame& frame) {
    for (; !complete() && wanted_[next_] == index_; ++next_) {
      if (next_ > 0 && wanted_[next_ - 1] == index_) {
        images_.push_back(images_.back());  // the sampler repeated an index
        continue;
      }
      Image image = converter_.convert(frame);
      for (int turn = 0; turn < turns_; ++turn) image = turned_once(image);
      images_.push_back(std::move(image));
    }
    ++index_;
  }

 private:
  std::span<const std::int64_t> wanted_;
  int turns_;
  Converter converter_;
  std::size_t next_ = 0;
  std::int64_t index_ = 0;
  std::vector<Image> images_;
};

/// Feeds one packet (null: end of stream) and collects what comes out.
void decode_packet(AVCodecContext& codec, const AVPacket* packet, AVFrame& frame,
                   Collector& collector, std::string_view name) {
  const int sent = avcodec_send_packet(&codec, packet);
  FOVEA_CHECK(sent >= 0 || sent == AVERROR_EOF, kCorruptData, name, ": frame ", collector.decoded(),
              " cannot be decoded: ", error_text(sent));
  while (!collector.complete()) {
    const int received = avcodec_receive_frame(&codec, &frame);
    if (received == AVERROR(EAGAIN) || received == AVERROR_EOF) return;
    FOVEA_CHECK(received >= 0, kCorruptData, name, ": frame ", collector.decoded(),
                " cannot be decoded: ", error_text(received));
    collector.add(frame);
    av_frame_unref(&frame);
  }
}

void check_indices(std::span<const std::int64_t> wanted, const VideoInfo& info,
                   const MediaLimits& limits, std::string_view name) {
  FOVEA_CHECK(!wanted.empty() && std::ranges::is_sorted(wanted) && wanted.front() >= 0 &&
                  wanted.back() < info.num_frames,
              kInternal, name, ": sampled frames are not within the ", info.num_frames,
              " frames of the video");
  check_num_frames(std::ssize(wanted), name, limits);
}

}  // namespace

VideoFrames decode(std::span<const std::uint8_t> bytes, std::string_view name,
                   const FrameSampler& sampler, const MediaLimits& limits) {
  Reader reader(bytes, name, limits);
  const Packet packet(av_packet_alloc());
  const Frame frame(av_frame_alloc());
  FOVEA_CHECK(packet != nullptr && frame != nullptr, kOutOfMemory, name, ": out of memory");
  VideoFrames result;
  result.info = count_frames(reader, *packet, name);
  const std::vector<std::int64_t> wanted = sampler(result.info);
  check_indices(wanted, result.info, limits, name);

  reader.rewind();
  const CodecContext codec = open_codec(reader.stream(), name);
  Collector collector(wanted, quarter_turns(reader.stream()), name);
  while (!collector.complete() && reader.next(*packet)) {
    decode_packet(*codec, packet.get(), *frame, collector, name);
  }
  if (!collector.complete()) decode_packet(*codec, nullptr, *frame, collector, name);
  FOVEA_CHECK(collector.complete(), kCorruptData, name, ": holds ", result.info.num_frames,
              " frames, only ", collector.decoded(), " could be decoded, frame ", wanted.back(),
              " is needed");
  result.frames = collector.take();
  return result;
}

}  // namespace fovea::media::ffmpeg
