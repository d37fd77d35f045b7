#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fovea/options.h"
#include "media/image.h"

// Images made in memory, so that tests say what is in them.

namespace fovea::test {

using Bytes = std::vector<std::uint8_t>;

/// Appends a number of at most 4 bytes.
void append_number(Bytes& to, std::uint32_t value, int num_bytes, bool big_endian);

/// Makes HWC values from v(x, y, c).
template <class T>
std::vector<T> make_samples(int width, int height, int channels,
                            const std::function<int(int, int, int)>& value) {
  std::vector<T> samples;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (int c = 0; c < channels; ++c) samples.push_back(static_cast<T>(value(x, y, c)));
  return samples;
}

/// A pattern in which every byte of a resized image depends on several pixels:
/// v(x, y, c) = (7x + 13y + 29c + x*y) mod 256.
Bytes checksum_pattern(int width, int height, int channels);

enum class PngColor : std::uint8_t { kGrey, kRgb, kPalette, kGreyAlpha, kRgba };

struct PngSpec {
  int width = 1;
  int height = 1;
  PngColor color = PngColor::kRgb;
  int bits = 8;
  bool interlaced = false;
  Bytes palette;  ///< RGB entries
  bool transparent =
      false;           ///< writes a tRNS chunk that makes the first level or entry transparent
  Bytes exif;          ///< eXIf payload
  std::string text;    ///< compressed text chunk
  double gamma = 0.0;  ///< gAMA chunk if not 0
};

int num_channels(PngColor color);

/// @param samples HWC, each below 2^bits.
Bytes encode_png(const PngSpec& spec, std::span<const std::uint16_t> samples);

struct JpegSpec {
  int width = 1;
  int height = 1;
  bool progressive = false;
  bool cmyk = false;    ///< four channels, stored as YCCK
  int subsampling = 0;  ///< of TurboJPEG; TJSAMP_444 is 0
};

/// @param samples HWC.
Bytes encode_jpeg(const JpegSpec& spec, std::span<const std::uint8_t> samples);

/// Encodes RGBA without loss, alpha-zero colours kept. An image that is all opaque gets no alpha.
Bytes encode_lossless_webp(int width, int height, std::span<const std::uint8_t> rgba);

/// An EXIF block (a TIFF header and one directory) with this orientation.
Bytes exif_block(int orientation, bool big_endian);

/// Puts an APP1 segment behind the start of a JPEG file.
Bytes with_jpeg_exif(const Bytes& jpeg, const Bytes& exif);

/// Rewrites a still WebP file as an extended one with an EXIF chunk.
Bytes with_webp_exif(const Bytes& webp, int width, int height, const Bytes& exif);

/// An extended WebP file with one frame at an even offset of a larger canvas.
Bytes webp_animation(int canvas_width, int canvas_height, int x, int y, int frame_width,
                     int frame_height, const Bytes& frame, bool has_alpha);

/// A PNG whose header claims this size and whose pixels are missing.
Bytes png_that_claims(std::uint32_t width, std::uint32_t height);

media::Image decode(const Bytes& bytes, const MediaOptions& options = {});

}  // namespace fovea::test
