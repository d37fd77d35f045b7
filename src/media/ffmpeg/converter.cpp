// From decoded frames to RGB, with the colour matrix and range that the stream names.
#include "media/ffmpeg/converter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "core/check.h"

namespace fovea::media::ffmpeg {

namespace {

/// swscale converts blocks of 8 pixels, and leaves the last one out where a row has no room for it;
/// 32 keep rows aligned.
constexpr std::size_t kRowPixels = 32;
constexpr int kRowPaddingBytes = 64;  // it writes a little beyond the end of a row

/// @param turned receives the image, turned clockwise.
void turn_once(const Image& image, Image& turned) {
  turned.width_px = image.height_px;
  turned.height_px = image.width_px;
  turned.rgb.resize(image.rgb.size());
  for (std::int64_t y = 0; y < turned.height_px; ++y) {
    for (std::int64_t x = 0; x < turned.width_px; ++x) {
      const std::int64_t from = ((image.height_px - 1 - x) * image.width_px + y) * 3;
      const std::int64_t to = (y * turned.width_px + x) * 3;
      std::copy_n(image.rgb.begin() + from, 3, turned.rgb.begin() + to);
    }
  }
}

/// Whether a matrix is like one that swscale has coefficients of: it takes BT.601 for all others.
bool is_convertible(AVColorSpace matrix) {
  return matrix != AVCOL_SPC_YCGCO && matrix != AVCOL_SPC_SMPTE2085 && matrix != AVCOL_SPC_ICTCP;
}

}  // namespace

int quarter_turns(const AVStream& stream) {
  const auto* const matrix = reinterpret_cast<const std::int32_t*>(
      av_stream_get_side_data(&stream, AV_PKT_DATA_DISPLAYMATRIX, nullptr));
  if (matrix == nullptr) return 0;
  const double degrees = av_display_rotation_get(matrix);  // counter-clockwise, or NaN
  if (std::isnan(degrees)) return 0;
  return static_cast<int>((std::lround(-degrees / 90.0) % 4 + 4) % 4);
}

const Image& Converter::convert(const AVFrame& frame, std::int64_t index) {
  check_size(frame, index);
  prepare(frame);
  scale(frame);
  for (int turn = 0; turn < quarter_turns_; ++turn) {
    turn_once(image_, turned_);
    std::swap(image_, turned_);
  }
  return image_;
}

void Converter::check_size(const AVFrame& frame, std::int64_t index) {
  if (width_px_ == 0) {
    width_px_ = frame.width;
    height_px_ = frame.height;
  }
  FOVEA_CHECK(frame.width == width_px_ && frame.height == height_px_, kCorruptData, name_,
              ": frame ", index, " is ", frame.width, "x", frame.height,
              " pixels, the first one is ", width_px_, "x", height_px_);
}

/// With swscale's default flags, as the ffmpeg program, OpenCV and PyAV convert: SWS_ACCURATE_RND
/// and SWS_FULL_CHR_H_INT give other pixels of 4:2:0. Source: libswscale/yuv2rgb.c, FFmpeg 5.1.
void Converter::prepare(const AVFrame& frame) {
  scaler_.reset(sws_getCachedContext(
      scaler_.release(), frame.width, frame.height, static_cast<AVPixelFormat>(frame.format),
      frame.width, frame.height, AV_PIX_FMT_RGB24, SWS_BICUBIC, nullptr, nullptr, nullptr));
  FOVEA_CHECK(scaler_ != nullptr, kUnsupported, name_, ": no conversion to RGB from ",
              av_get_pix_fmt_name(static_cast<AVPixelFormat>(frame.format)));
  FOVEA_CHECK(is_convertible(frame.colorspace), kUnsupported, name_,
              ": no conversion to RGB from the colour matrix ",
              av_color_space_name(frame.colorspace));
  // The stream's matrix; BT.601 where it does not say, as swscale assumes.
  const int matrix = frame.colorspace == AVCOL_SPC_UNSPECIFIED ? SWS_CS_DEFAULT : frame.colorspace;
  const int* const from = sws_getCoefficients(matrix);
  const int full_range = frame.color_range == AVCOL_RANGE_JPEG ? 1 : 0;
  sws_setColorspaceDetails(scaler_.get(), from, full_range, sws_getCoefficients(SWS_CS_DEFAULT), 1,
                           0, 1 << 16, 1 << 16);
}

/// Into rows of whole blocks of pixels, which then move together in place.
void Converter::scale(const AVFrame& frame) {
  const auto width = static_cast<std::size_t>(frame.width);
  const auto height = static_cast<std::size_t>(frame.height);
  const std::size_t row_bytes = width * 3;
  const std::size_t stride = (width + kRowPixels - 1) / kRowPixels * kRowPixels * 3;
  image_.width_px = frame.width;
  image_.height_px = frame.height;
  image_.rgb.resize(stride * height + kRowPaddingBytes);
  std::uint8_t* const rows[4] = {image_.rgb.data()};
  const int strides[4] = {static_cast<int>(stride)};
  sws_scale(scaler_.get(), frame.data, frame.linesize, 0, frame.height, rows, strides);
  for (std::size_t y = 1; y < height && stride != row_bytes; ++y) {
    std::memmove(image_.rgb.data() + y * row_bytes, image_.rgb.data() + y * stride, row_bytes);
  }
  image_.rgb.resize(row_bytes * height);
}

}  // namespace fovea::media::ffmpeg
