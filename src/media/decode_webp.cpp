// WebP through libwebp. An animation is decoded as in Pillow: its first frame on a transparent
// canvas. A still image fills its canvas.
#include <webp/decode.h>
#include <webp/demux.h>

#include <memory>
#include <vector>

#include "core/check.h"
#include "media/bytes.h"
#include "media/decoders.h"
#include "media/profile.h"
#include "media/rgb_convert.h"

namespace fovea::media {
namespace {

struct DeleteDemuxer {
  void operator()(WebPDemuxer* demuxer) const noexcept { WebPDemuxDelete(demuxer); }
};
using Demuxer = std::unique_ptr<WebPDemuxer, DeleteDemuxer>;

/// Null if the container is broken or incomplete.
Demuxer open_demuxer(Bytes file) {
  const WebPData data{file.data(), file.size()};
  return Demuxer(WebPDemux(&data));
}

const char* to_text(VP8StatusCode status) {
  switch (status) {
    case VP8_STATUS_OK: return "no error";
    case VP8_STATUS_OUT_OF_MEMORY: return "out of memory";
    case VP8_STATUS_INVALID_PARAM: return "invalid parameter";
    case VP8_STATUS_BITSTREAM_ERROR: return "the pixel data is damaged";
    case VP8_STATUS_UNSUPPORTED_FEATURE: return "unsupported feature";
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA: return "the file is truncated";
    case VP8_STATUS_USER_ABORT: return "stopped";
  }
  return "unknown error";
}

WebPBitstreamFeatures read_features(const EncodedImage& source) {
  WebPBitstreamFeatures features;
  const VP8StatusCode status = WebPGetFeatures(source.bytes.data(), source.bytes.size(), &features);
  FOVEA_CHECK(status == VP8_STATUS_OK, kCorruptData, source.name,
              ": cannot read the WebP header: ", to_text(status));
  return features;
}

/// A rectangle of pixels inside a larger image.
struct Canvas {
  WEBP_CSP_MODE mode;
  std::uint8_t* data;  ///< first pixel of the rectangle
  std::size_t size_bytes;
  std::size_t stride_bytes;
};

void decode_bitstream(Bytes bitstream, const Canvas& canvas, std::string_view name) {
  WebPDecoderConfig config;
  FOVEA_CHECK(WebPInitDecoderConfig(&config) != 0, kInternal, "libwebp of another version");
  config.output.colorspace = canvas.mode;
  config.output.is_external_memory = 1;
  WebPRGBABuffer& rgba = config.output.u.RGBA;  // NOLINT: libwebp's own union
  rgba = {canvas.data, static_cast<int>(canvas.stride_bytes), canvas.size_bytes};
  const VP8StatusCode status = WebPDecode(bitstream.data(), bitstream.size(), &config);
  WebPFreeDecBuffer(&config.output);
  FOVEA_CHECK(status == VP8_STATUS_OK, kCorruptData, name,
              ": cannot decode WebP: ", to_text(status));
}

/// Decodes the first frame of an animation into RGBA pixels of the whole canvas, which are zero.
void decode_first_frame(const EncodedImage& source, const ImageInfo& info,
                        std::vector<std::uint8_t>& rgba) {
  const Demuxer demuxer = open_demuxer(source.bytes);
  WebPIterator frame{};
  FOVEA_CHECK(demuxer && WebPDemuxGetFrame(demuxer.get(), 1, &frame) != 0, kCorruptData,
              source.name, ": cannot find the first frame of the WebP animation");
  const std::unique_ptr<WebPIterator, decltype(&WebPDemuxReleaseIterator)> release(
      &frame, WebPDemuxReleaseIterator);
  FOVEA_CHECK(frame.complete != 0 && frame.x_offset >= 0 && frame.y_offset >= 0 &&
                  frame.x_offset + frame.width <= info.width_px &&
                  frame.y_offset + frame.height <= info.height_px,
              kCorruptData, source.name, ": first WebP frame is incomplete or leaves the canvas");
  const std::size_t stride = static_cast<std::size_t>(info.width_px) * 4;
  const std::size_t start = static_cast<std::size_t>(frame.y_offset) * stride +
                            static_cast<std::size_t>(frame.x_offset) * 4;
  decode_bitstream({frame.fragment.bytes, frame.fragment.size},
                   {MODE_RGBA, rgba.data() + start, rgba.size() - start, stride}, source.name);
}

/// Payload of the first chunk of a type, a view of the file; empty if there is none.
Bytes find_chunk(const WebPDemuxer* demuxer, const char type[4]) {
  WebPChunkIterator chunk{};
  if (demuxer == nullptr || WebPDemuxGetChunk(demuxer, type, 1, &chunk) == 0) return {};
  const Bytes payload(chunk.chunk.bytes, chunk.chunk.size);
  WebPDemuxReleaseChunkIterator(&chunk);
  return payload;
}

}  // namespace

ImageHeader read_webp_header(const EncodedImage& source) {
  const WebPBitstreamFeatures features = read_features(source);
  const Demuxer demuxer = open_demuxer(source.bytes);
  return {{ImageFormat::kWebp, features.width, features.height},
          read_orientation(find_chunk(demuxer.get(), "EXIF"), find_chunk(demuxer.get(), "XMP "))};
}

Image decode_webp(const EncodedImage& source, const ImageInfo& info, const MediaOptions& options) {
  Image image = make_image(info);
  const WebPBitstreamFeatures features = read_features(source);
  const auto width = static_cast<std::size_t>(info.width_px);
  if (features.has_animation == 0 && features.has_alpha == 0) {
    decode_bitstream(source.bytes, {MODE_RGB, image.rgb.data(), image.rgb.size(), width * 3},
                     source.name);
    return image;
  }
  std::vector<std::uint8_t> rgba(image.rgb.size() / 3 * 4);
  if (features.has_animation != 0)
    decode_first_frame(source, info, rgba);
  else
    decode_bitstream(source.bytes, {MODE_RGBA, rgba.data(), rgba.size(), width * 4}, source.name);
  const bool composites = rules_of(options.profile).compositing != Compositing::kNone;
  if (features.has_alpha != 0 && composites)
    composite_rgba(rgba.data(), rgba.size() / 4, options.background, image.rgb.data());
  else
    drop_alpha(rgba.data(), rgba.size() / 4, image.rgb.data());
  return image;
}

}  // namespace fovea::media
