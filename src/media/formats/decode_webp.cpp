// WebP through libwebp. An animation is decoded as in Pillow: its first frame on a transparent
// canvas. A still image fills its canvas.
#include <webp/decode.h>
#include <webp/demux.h>

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "core/check.h"
#include "core/interrupt.h"
#include "media/bytes.h"
#include "media/formats/decoders.h"
#include "media/formats/image_writer.h"
#include "media/formats/webp_codes.h"
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
    case VP8_STATUS_UNSUPPORTED_FEATURE: return "unsupported feature";
    case VP8_STATUS_SUSPENDED:
    case VP8_STATUS_NOT_ENOUGH_DATA: return "the file is truncated";
    case VP8_STATUS_BITSTREAM_ERROR:
    case VP8_STATUS_USER_ABORT: return "the pixel data is damaged";
  }
  return "unknown error";
}

WebPBitstreamFeatures read_features(Bytes bitstream, std::string_view name) {
  WebPBitstreamFeatures features;
  const VP8StatusCode status = WebPGetFeatures(bitstream.data(), bitstream.size(), &features);
  FOVEA_CHECK(status == VP8_STATUS_OK, kCorruptData, name,
              ": cannot read the WebP header: ", to_text(status));
  return features;
}

constexpr int kLossyFormat = 1;  // of WebPBitstreamFeatures::format

/// The pixels of a file: those of its first frame, on a transparent canvas.
struct Frame {
  Bytes bitstream;
  std::int64_t x_px;  ///< on the canvas
  std::int64_t y_px;
  std::int64_t width_px;
  std::int64_t height_px;
  bool is_lossy;
  bool has_alpha;
};

/// @param canvas features of the file.
Frame find_frame(const EncodedImage& source, const WebPBitstreamFeatures& canvas) {
  if (canvas.has_animation == 0)
    return {source.bytes,         0, 0, canvas.width, canvas.height, canvas.format == kLossyFormat,
            canvas.has_alpha != 0};
  const Demuxer demuxer = open_demuxer(source.bytes);
  WebPIterator frame{};
  FOVEA_CHECK(demuxer && WebPDemuxGetFrame(demuxer.get(), 1, &frame) != 0, kCorruptData,
              source.name, ": cannot find the first frame of the WebP animation");
  const std::unique_ptr<WebPIterator, decltype(&WebPDemuxReleaseIterator)> release(
      &frame, WebPDemuxReleaseIterator);
  FOVEA_CHECK(frame.complete != 0 && frame.x_offset >= 0 && frame.y_offset >= 0 &&
                  frame.x_offset + frame.width <= canvas.width &&
                  frame.y_offset + frame.height <= canvas.height,
              kCorruptData, source.name, ": first WebP frame is incomplete or leaves the canvas");
  const Bytes bitstream(frame.fragment.bytes, frame.fragment.size);
  const WebPBitstreamFeatures features = read_features(bitstream, source.name);
  return {bitstream,           frame.x_offset, frame.y_offset,
          frame.width,         frame.height,   features.format == kLossyFormat,
          frame.has_alpha != 0};
}

std::uint32_t read_u32(Bytes bytes) {
  return bytes[0] | std::uint32_t{bytes[1]} << 8 | std::uint32_t{bytes[2]} << 16 |
         std::uint32_t{bytes[3]} << 24;
}

/// The bytes that libwebp keeps for the codes of an image without loss.
/// @param payload of a VP8L chunk: a signature 1, 14 bits for either side less 1, 4 others.
std::size_t code_bytes_of_image(Bytes payload) {
  constexpr std::size_t kHeaderBytes = 5;
  if (payload.size() < kHeaderBytes) return 0;
  const std::uint32_t sides = read_u32(payload.subspan(1));
  return webp_code_bytes(payload.subspan(kHeaderBytes), (sides & 0x3fff) + 1,
                         (sides >> 14 & 0x3fff) + 1);
}

/// Those for the alpha of one with loss, which may be coded in the same way.
/// @param payload of an ALPH chunk; empty: there is none.
std::size_t code_bytes_of_alpha(Bytes payload, const Frame& frame) {
  const bool is_coded = !payload.empty() && (payload[0] & 3) == 1;
  return is_coded ? webp_code_bytes(payload.subspan(1), frame.width_px, frame.height_px) : 0;
}

/// Those for a frame: as in libwebp, its first image counts, and the last alpha in front of it. A
/// chunk is: type 4, length 4 (little endian, of the payload), payload, a 0 if its length is odd.
std::size_t code_bytes(const Frame& frame) {
  constexpr std::size_t kChunkHeaderBytes = 8;
  constexpr std::size_t kFileHeaderBytes = 12;  // "RIFF", length, "WEBP"
  Bytes rest = frame.bitstream;
  if (text_of(rest).starts_with("RIFF"))
    rest = rest.subspan(std::min(rest.size(), kFileHeaderBytes));
  Bytes alpha;
  while (rest.size() >= kChunkHeaderBytes) {
    const std::string_view type = text_of(rest.first(4));
    const std::size_t size = read_u32(rest.subspan(4));
    rest = rest.subspan(kChunkHeaderBytes);
    const Bytes payload = rest.first(std::min(size, rest.size()));
    if (type == "VP8L") return code_bytes_of_image(payload);
    if (type == "VP8 ") break;
    if (type == "ALPH") alpha = payload;
    rest = rest.subspan(std::min(size + size % 2, rest.size()));
  }
  return code_bytes_of_alpha(alpha, frame);
}

/// The bytes that libwebp takes beside the pixels that it returns. Without loss, and for the alpha
/// of an image with loss, it keeps 4 bytes per pixel, three tables of one entry per 4 x 4 pixels
/// and the tables of codes; with loss, some rows.
std::size_t library_bytes(const Frame& frame) {
  constexpr std::size_t kRowsKept = 64;
  const auto width = static_cast<std::size_t>(frame.width_px);
  const auto height = static_cast<std::size_t>(frame.height_px);
  const std::size_t rows = width * kRowsKept * 4 + code_bytes(frame);
  const std::size_t lossless = width * height * 4 + (width + 3) * (height + 3) / 16 * 4 * 3;
  if (!frame.is_lossy) return rows + lossless;
  return frame.has_alpha ? rows + lossless + width * height : rows;
}

std::size_t num_channels(const WebPBitstreamFeatures& canvas) noexcept {
  return canvas.has_animation != 0 || canvas.has_alpha != 0 ? 4 : 3;
}

/// An opaque still image that is upright as it is stored is decoded where it stays.
bool is_decoded_in_place(const WebPBitstreamFeatures& canvas, Orientation orientation) noexcept {
  return num_channels(canvas) == 3 && orientation == Orientation::kUpright;
}

std::size_t decode_bytes(const WebPBitstreamFeatures& canvas, const Frame& frame,
                         Orientation orientation) {
  const std::size_t image = ImageWriter::memory_bytes(canvas.width, canvas.height);
  const std::size_t library = library_bytes(frame);
  if (is_decoded_in_place(canvas, orientation)) return image + library + kDecoderBytes;
  const std::size_t frame_bytes =
      static_cast<std::size_t>(frame.width_px * frame.height_px) * num_channels(canvas);
  return frame_bytes + std::max(library, image) + kDecoderBytes;
}

/// Whether a file is shorter than it says. The decoder may not notice, because it is given slices.
bool is_cut_off(Bytes bitstream) {
  constexpr std::size_t kChunkHeaderBytes = 8;  // "RIFF" and a length, little endian
  if (bitstream.size() < kChunkHeaderBytes || !text_of(bitstream).starts_with("RIFF")) return false;
  const std::size_t length = std::size_t{bitstream[7]} << 24 | std::size_t{bitstream[6]} << 16 |
                             std::size_t{bitstream[5]} << 8 | bitstream[4];
  return length > bitstream.size() - kChunkHeaderBytes;
}

/// Decodes a frame into `pixels`, RGB or RGBA without gaps. One without loss is decoded at one go:
/// its time is bounded by the limit on memory, some 50 megapixels.
void decode_frame(const Frame& frame, std::size_t channels, std::span<std::uint8_t> pixels,
                  std::string_view name) {
  constexpr std::size_t kSliceBytes = std::size_t{128} << 10;  // some milliseconds
  WebPDecoderConfig config;
  FOVEA_CHECK(WebPInitDecoderConfig(&config) != 0, kInternal, "libwebp of another version");
  config.output.colorspace = channels == 4 ? MODE_RGBA : MODE_RGB;
  config.output.is_external_memory = 1;
  WebPRGBABuffer& rgba = config.output.u.RGBA;  // NOLINT: libwebp's own union
  rgba = {pixels.data(), static_cast<int>(frame.width_px) * static_cast<int>(channels),
          pixels.size()};
  const std::unique_ptr<WebPIDecoder, decltype(&WebPIDelete)> decoder(
      WebPIDecode(nullptr, 0, &config), WebPIDelete);
  if (!decoder) throw std::bad_alloc();
  const Bytes file = frame.bitstream;
  std::size_t given = 0;
  VP8StatusCode status = VP8_STATUS_SUSPENDED;
  while (status == VP8_STATUS_SUSPENDED && given < file.size() && !is_cut_off(file)) {
    check_interrupt();
    given = frame.is_lossy ? std::min(file.size(), given + kSliceBytes) : file.size();
    status = WebPIUpdate(decoder.get(), file.data(), given);
  }
  if (status == VP8_STATUS_OUT_OF_MEMORY) throw std::bad_alloc();
  FOVEA_CHECK(status == VP8_STATUS_OK, kCorruptData, name,
              ": cannot decode WebP: ", to_text(status));
}

/// Puts a decoded frame on its canvas, row by row. Transparent black around it is composited or
/// loses its alpha, too.
/// @param background null: alpha is dropped.
Image place_frame(const ImageHeader& header, const Frame& frame,
                  std::span<const std::uint8_t> pixels, std::size_t channels,
                  const std::uint8_t* background) {
  constexpr std::uint8_t kBlack[3] = {};
  const ImageInfo& canvas = header.info;
  ImageWriter writer(canvas.width_px, canvas.height_px, header.orientation);
  const auto frame_width = static_cast<std::size_t>(frame.width_px);
  for (std::int64_t y = 0; y < canvas.height_px; ++y) {
    check_interrupt();
    std::uint8_t* const row = writer.row(y);
    if (frame.width_px < canvas.width_px || frame.height_px < canvas.height_px)
      for (std::int64_t x = 0; x < canvas.width_px; ++x)
        std::copy_n(background == nullptr ? kBlack : background, 3, row + x * 3);
    const std::int64_t frame_y = y - frame.y_px;
    if (frame_y >= 0 && frame_y < frame.height_px) {
      const std::uint8_t* const from =
          pixels.data() + static_cast<std::size_t>(frame_y) * frame_width * channels;
      std::uint8_t* const to = row + frame.x_px * 3;
      if (channels == 3)
        std::copy_n(from, frame_width * 3, to);
      else if (background == nullptr)
        drop_alpha(from, frame_width, to);
      else
        composite_rgba(from, frame_width, background, to);
    }
    writer.finish_row(y);
  }
  return writer.take();
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
  const WebPBitstreamFeatures canvas = read_features(source.bytes, source.name);
  const Demuxer demuxer = open_demuxer(source.bytes);
  const Orientation orientation =
      read_orientation(find_chunk(demuxer.get(), "EXIF"), find_chunk(demuxer.get(), "XMP "));
  // The start of an animation has no frame that is complete: it is taken for a full one.
  const Frame full{source.bytes, 0, 0, canvas.width, canvas.height, false, true};
  const Frame frame = canvas.has_animation != 0 && !demuxer ? full : find_frame(source, canvas);
  return {{.format = ImageFormat::kWebp,
           .width_px = canvas.width,
           .height_px = canvas.height,
           .decode_bytes = decode_bytes(canvas, frame, orientation)},
          orientation};
}

Image decode_webp(const EncodedImage& source, const ImageHeader& header,
                  const MediaOptions& options, std::vector<std::uint8_t> memory) {
  const WebPBitstreamFeatures canvas = read_features(source.bytes, source.name);
  const Frame frame = find_frame(source, canvas);
  const std::size_t channels = num_channels(canvas);
  std::vector<std::uint8_t> pixels = std::move(memory);
  pixels.resize(static_cast<std::size_t>(frame.width_px * frame.height_px) * channels);
  decode_frame(frame, channels, pixels, source.name);
  if (is_decoded_in_place(canvas, header.orientation))
    return {canvas.width, canvas.height, std::move(pixels)};
  const bool composites =
      canvas.has_alpha != 0 && rules_of(options.profile).compositing != Compositing::kNone;
  return place_frame(header, frame, pixels, channels, composites ? options.background : nullptr);
}

}  // namespace fovea::media
