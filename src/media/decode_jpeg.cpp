// JPEG, decoded by libjpeg-turbo with its defaults (accurate integer DCT, fancy upsampling), which
// are those of Pillow.
//
// A file is FF D8, then segments: FF, marker, and unless the marker is 01 or D0..D9 a length (2
// bytes, big endian, counting itself) and a payload. After SOS (DA) follow entropy-coded bytes, in
// which FF is always followed by 00 or a restart marker (D0..D7); D9 ends the image.
//   SOFn (C0..CF but C4, C8, CC): precision 1, height 2, width 2, components 1, ...
//   APP1 (E1): "Exif\0\0" and a TIFF block, or "http://ns.adobe.com/xap/1.0/\0" and an XMP packet
// The sides are read here and not by the library, which refuses unusual chroma sampling when it
// reads only a header.
#include <turbojpeg.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "media/bytes.h"
#include "media/decoders.h"
#include "media/rgb_convert.h"

namespace fovea::media {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::uint8_t kEndOfImage = 0xD9;
constexpr std::uint8_t kStartOfScan = 0xDA;
constexpr std::uint8_t kApp1 = 0xE1;

constexpr bool is_frame_header(std::uint8_t marker) {
  return marker >= 0xC0 && marker <= 0xCF && marker != 0xC4 && marker != 0xC8 && marker != 0xCC;
}

constexpr bool has_payload(std::uint8_t marker) {
  return marker != 0x01 && !(marker >= 0xD0 && marker <= kEndOfImage);
}

struct Segment {
  std::uint8_t marker;
  Bytes payload;
};

/// Walks the segments of a file and skips entropy-coded bytes and garbage.
class SegmentReader {
 public:
  explicit SegmentReader(Bytes file) : rest_(file) {}

  /// The next segment, or nothing if the file ends or a length points beyond its end.
  std::optional<Segment> next() {
    while (skip_to_marker_prefix()) {
      const std::uint8_t marker = rest_[1];
      const bool stuffing = marker == 0x00 || marker == 0xFF;  // of entropy-coded bytes, of markers
      rest_ = rest_.subspan(marker == 0xFF ? 1 : 2);
      if (stuffing) continue;
      if (!has_payload(marker)) return Segment{marker, {}};
      if (rest_.size() < 2) break;
      const std::size_t length = static_cast<std::size_t>(rest_[0]) << 8 | rest_[1];
      if (length < 2 || length > rest_.size()) break;
      const Segment segment{marker, rest_.subspan(2, length - 2)};
      rest_ = rest_.subspan(length);
      return segment;
    }
    rest_ = {};
    return std::nullopt;
  }

 private:
  /// Moves to the next FF that has a byte behind it; false if there is none.
  bool skip_to_marker_prefix() {
    const void* const found =
        rest_.empty() ? nullptr : std::memchr(rest_.data(), 0xFF, rest_.size());
    if (found == nullptr) return false;
    rest_ = rest_.subspan(
        static_cast<std::size_t>(static_cast<const std::uint8_t*>(found) - rest_.data()));
    return rest_.size() >= 2;
  }

  Bytes rest_;
};

/// What a frame header says.
struct Frame {
  int precision_bits;
  std::int64_t height_px;
  std::int64_t width_px;
  int num_components;
};

Frame parse_frame(Bytes payload, std::string_view name) {
  FOVEA_CHECK(payload.size() >= 6, kCorruptData, name,
              ": expected a JPEG frame header of at least 6 bytes, got ", payload.size());
  return {payload[0], payload[1] << 8 | payload[2], payload[3] << 8 | payload[4], payload[5]};
}

Frame find_frame(const EncodedImage& source) {
  SegmentReader segments(source.bytes);
  while (const std::optional<Segment> segment = segments.next()) {
    if (is_frame_header(segment->marker)) return parse_frame(segment->payload, source.name);
    if (segment->marker == kStartOfScan) break;
  }
  throw Error(ErrorCode::kCorruptData,
              cat(source.name, ": JPEG ends or starts its pixels before a frame header"));
}

/// From the metadata in front of the pixels: the EXIF segments together and the last XMP packet.
Orientation find_orientation(Bytes file) {
  constexpr std::string_view kExif = "Exif\0\0"sv;
  constexpr std::string_view kXmp = "http://ns.adobe.com/xap/1.0/\0"sv;
  std::vector<std::uint8_t> exif;
  Bytes xmp;
  SegmentReader segments(file);
  while (const std::optional<Segment> segment = segments.next()) {
    if (segment->marker == kStartOfScan) break;
    if (segment->marker != kApp1) continue;
    const Bytes payload = segment->payload;
    if (text_of(payload).starts_with(kExif))
      exif.insert(exif.end(), payload.begin() + kExif.size(), payload.end());
    else if (text_of(payload).starts_with(kXmp))
      xmp = payload.subspan(kXmp.size());
  }
  return read_orientation(exif, xmp);
}

bool has_end_of_image(Bytes file) {
  SegmentReader segments(file);
  while (const std::optional<Segment> segment = segments.next())
    if (segment->marker == kEndOfImage) return true;
  return false;
}

struct DestroyDecompressor {
  void operator()(tjhandle handle) const noexcept { (void)tjDestroy(handle); }
};
using Decompressor = std::unique_ptr<void, DestroyDecompressor>;

/// True if pixels are wrong. The library finishes such images and reports the first thing it
/// noticed; bytes between segments and odd version numbers are harmless.
bool is_damage(std::string_view warning) {
  return (warning.starts_with("Corrupt JPEG data"sv) &&
          warning.find("extraneous bytes"sv) == std::string_view::npos) ||
         warning.starts_with("Premature end"sv);
}

/// Decodes into `out` [height, width, tjPixelSize[format]].
void decompress(const EncodedImage& source, const ImageInfo& info, TJPF format, std::uint8_t* out) {
  const Decompressor handle(tjInitDecompress());
  FOVEA_CHECK(handle, kOutOfMemory, source.name,
              ": cannot make a JPEG decoder: ", tjGetErrorStr2(nullptr));
  const int flags = TJFLAG_ACCURATEDCT | TJFLAG_LIMITSCANS;
  const int status = tjDecompress2(handle.get(), source.bytes.data(), source.bytes.size(), out,
                                   static_cast<int>(info.width_px), 0,
                                   static_cast<int>(info.height_px), format, flags);
  if (status == 0) return;
  const std::string_view reason = tjGetErrorStr2(handle.get());
  const bool harmless = tjGetErrorCode(handle.get()) == TJERR_WARNING && !is_damage(reason);
  FOVEA_CHECK(harmless, kCorruptData, source.name, ": cannot decode JPEG: ", reason);
}

}  // namespace

ImageHeader read_jpeg_header(const EncodedImage& source) {
  const Frame frame = find_frame(source);
  FOVEA_CHECK(frame.precision_bits == 8, kUnsupported, source.name,
              ": expected a JPEG of 8 bits per sample, got ", frame.precision_bits);
  return {{ImageFormat::kJpeg, frame.width_px, frame.height_px}, find_orientation(source.bytes)};
}

Image decode_jpeg(const EncodedImage& source, const ImageInfo& info) {
  FOVEA_CHECK(has_end_of_image(source.bytes), kCorruptData, source.name,
              ": JPEG is truncated: it has no end-of-image marker");
  Image image = make_image(info);
  if (find_frame(source).num_components != 4) {
    decompress(source, info, TJPF_RGB, image.rgb.data());
    return image;
  }
  // Four components are CMYK, inverted whatever the Adobe marker says, as in Pillow.
  std::vector<std::uint8_t> cmyk(image.rgb.size() / 3 * 4);
  decompress(source, info, TJPF_CMYK, cmyk.data());
  inverted_cmyk_to_rgb(cmyk.data(), cmyk.size() / 4, image.rgb.data());
  return image;
}

}  // namespace fovea::media
