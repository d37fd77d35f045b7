#include "media/test_images.h"

#include <png.h>
#include <turbojpeg.h>
#include <webp/encode.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <stdexcept>

#include "media/decode_image.h"

namespace fovea::test {

void append_number(Bytes& to, std::uint32_t value, int num_bytes, bool big_endian) {
  for (int i = 0; i < num_bytes; ++i)
    to.push_back(static_cast<std::uint8_t>(value >> 8 * (big_endian ? num_bytes - 1 - i : i)));
}

namespace {

void append(Bytes& to, std::span<const std::uint8_t> bytes) {
  std::copy(bytes.begin(), bytes.end(), std::back_inserter(to));
}
void append(Bytes& to, std::string_view text) {
  std::copy(text.begin(), text.end(), std::back_inserter(to));
}

/// Rows as PNG stores them: big endian, samples of less than 8 bits packed from the left.
std::vector<Bytes> pack_rows(const PngSpec& spec, std::span<const std::uint16_t> samples) {
  const auto per_row = static_cast<std::size_t>(spec.width * num_channels(spec.color));
  std::vector<Bytes> rows;
  for (std::size_t y = 0; y < static_cast<std::size_t>(spec.height); ++y) {
    Bytes row((per_row * static_cast<std::size_t>(spec.bits) + 7) / 8);
    for (std::size_t i = 0; i < per_row; ++i)
      for (int bit = 0; bit < spec.bits; ++bit) {
        const std::size_t at =
            i * static_cast<std::size_t>(spec.bits) + static_cast<std::size_t>(bit);
        const int set = samples[y * per_row + i] >> (spec.bits - 1 - bit) & 1;
        row[at / 8] = static_cast<std::uint8_t>(row[at / 8] | set << (7 - at % 8));
      }
    rows.push_back(std::move(row));
  }
  return rows;
}

int png_color_type(PngColor color) {
  switch (color) {
    case PngColor::kGrey: return PNG_COLOR_TYPE_GRAY;
    case PngColor::kRgb: return PNG_COLOR_TYPE_RGB;
    case PngColor::kPalette: return PNG_COLOR_TYPE_PALETTE;
    case PngColor::kGreyAlpha: return PNG_COLOR_TYPE_GRAY_ALPHA;
    case PngColor::kRgba: return PNG_COLOR_TYPE_RGB_ALPHA;
  }
  return -1;
}

void write_ancillary(png_structp png, png_infop info, const PngSpec& spec) {
  if (spec.transparent) {
    const png_byte alpha[2] = {0, 128};
    const png_color_16 level{};
    png_set_tRNS(png, info, alpha, spec.color == PngColor::kPalette ? 2 : 0, &level);
  }
  if (spec.gamma != 0.0) png_set_gAMA(png, info, spec.gamma);
  if (!spec.exif.empty())
    png_set_eXIf_1(png, info, static_cast<png_uint_32>(spec.exif.size()),
                   const_cast<png_bytep>(spec.exif.data()));
  if (!spec.text.empty()) {
    png_text text{};
    text.compression = PNG_TEXT_COMPRESSION_zTXt;
    text.key = const_cast<char*>("Comment");
    text.text = const_cast<char*>(spec.text.data());
    text.text_length = spec.text.size();
    png_set_text(png, info, &text, 1);
  }
}

[[noreturn]] void fail_png(png_structp, png_const_charp reason) {
  std::fprintf(stderr, "cannot encode the test image: %s\n", reason);
  std::abort();
}

Bytes riff_chunk(std::string_view type, const Bytes& payload) {
  Bytes chunk;
  append(chunk, type);
  append_number(chunk, static_cast<std::uint32_t>(payload.size()), 4, false);
  append(chunk, payload);
  if (payload.size() % 2 != 0) chunk.push_back(0);
  return chunk;
}

constexpr std::uint8_t kWebpAlpha = 0x10;
constexpr std::uint8_t kWebpExif = 0x08;
constexpr std::uint8_t kWebpAnimation = 0x02;

/// "RIFF" size "WEBP" VP8X and the other chunks.
Bytes extended_webp(std::uint8_t flags, int width, int height, const Bytes& chunks) {
  Bytes head{flags, 0, 0, 0};
  append_number(head, static_cast<std::uint32_t>(width - 1), 3, false);
  append_number(head, static_cast<std::uint32_t>(height - 1), 3, false);
  Bytes payload;
  append(payload, "WEBP");
  append(payload, riff_chunk("VP8X", head));
  append(payload, chunks);
  return riff_chunk("RIFF", payload);
}

/// The chunks of a WebP file behind "RIFF" size "WEBP".
Bytes chunks_of(const Bytes& webp) { return {webp.begin() + 12, webp.end()}; }

}  // namespace

Bytes checksum_pattern(int width, int height, int channels) {
  return make_samples<std::uint8_t>(width, height, channels, [](int x, int y, int c) {
    return (7 * x + 13 * y + 29 * c + x * y) % 256;
  });
}

int num_channels(PngColor color) {
  switch (color) {
    case PngColor::kGrey:
    case PngColor::kPalette: return 1;
    case PngColor::kGreyAlpha: return 2;
    case PngColor::kRgb: return 3;
    case PngColor::kRgba: return 4;
  }
  return 0;
}

Bytes encode_png(const PngSpec& spec, std::span<const std::uint16_t> samples) {
  std::vector<Bytes> rows = pack_rows(spec, samples);
  std::vector<png_bytep> row_pointers;
  for (Bytes& row : rows) row_pointers.push_back(row.data());

  Bytes file;
  png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, fail_png, nullptr);
  png_infop info = png_create_info_struct(png);
  png_set_write_fn(
      png, &file,
      [](png_structp self, png_bytep data, std::size_t size) {
        append(*static_cast<Bytes*>(png_get_io_ptr(self)), std::span(data, size));
      },
      [](png_structp) {});
  png_set_IHDR(png, info, static_cast<png_uint_32>(spec.width),
               static_cast<png_uint_32>(spec.height), spec.bits, png_color_type(spec.color),
               spec.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (!spec.palette.empty())
    png_set_PLTE(png, info, reinterpret_cast<png_const_colorp>(spec.palette.data()),
                 static_cast<int>(spec.palette.size() / 3));
  write_ancillary(png, info, spec);
  png_write_info(png, info);
  png_write_image(png, row_pointers.data());
  png_write_end(png, info);
  png_destroy_write_struct(&png, &info);
  return file;
}

Bytes encode_jpeg(const JpegSpec& spec, std::span<const std::uint8_t> samples) {
  const tjhandle handle = tjInitCompress();
  unsigned char* data = nullptr;
  unsigned long size = 0;
  constexpr int kQuality = 90;
  const int status =
      tjCompress2(handle, samples.data(), spec.width, 0, spec.height,
                  spec.cmyk ? TJPF_CMYK : TJPF_RGB, &data, &size, spec.subsampling, kQuality,
                  TJFLAG_ACCURATEDCT | (spec.progressive ? TJFLAG_PROGRESSIVE : 0));
  if (status != 0) throw std::runtime_error(tjGetErrorStr2(handle));
  const Bytes file(data, data + size);
  tjFree(data);
  tjDestroy(handle);
  return file;
}

Bytes encode_lossless_webp(int width, int height, std::span<const std::uint8_t> rgba) {
  WebPConfig config;
  WebPPicture image;
  if (WebPConfigInit(&config) == 0 || WebPPictureInit(&image) == 0)
    throw std::runtime_error("libwebp of another version");
  config.lossless = 1;
  config.exact = 1;
  image.use_argb = 1;
  image.width = width;
  image.height = height;
  WebPMemoryWriter writer;
  WebPMemoryWriterInit(&writer);
  image.writer = WebPMemoryWrite;
  image.custom_ptr = &writer;
  const bool encoded = WebPPictureImportRGBA(&image, rgba.data(), width * 4) != 0 &&
                       WebPEncode(&config, &image) != 0;
  const Bytes file(writer.mem, writer.mem + writer.size);
  WebPPictureFree(&image);
  WebPMemoryWriterClear(&writer);
  if (!encoded) throw std::runtime_error("cannot encode the WebP test image");
  return file;
}

Bytes exif_block(int orientation, bool big_endian) {
  Bytes block;
  append(block, big_endian ? "MM" : "II");
  append_number(block, 42, 2, big_endian);
  append_number(block, 8, 4, big_endian);  // offset of the directory
  append_number(block, 2, 2, big_endian);  // entries
  const auto entry = [&](std::uint32_t tag, std::uint32_t value) {
    append_number(block, tag, 2, big_endian);
    append_number(block, 3, 2, big_endian);  // SHORT
    append_number(block, 1, 4, big_endian);
    append_number(block, value, 2, big_endian);
    append_number(block, 0, 2, big_endian);
  };
  entry(0x0103, 6);  // compression, of no interest
  entry(0x0112, static_cast<std::uint32_t>(orientation));
  append_number(block, 0, 4, big_endian);  // no further directory
  return block;
}

Bytes with_jpeg_exif(const Bytes& jpeg, const Bytes& exif) {
  Bytes file(jpeg.begin(), jpeg.begin() + 2);
  append(file, "\xFF\xE1");
  append_number(file, static_cast<std::uint32_t>(exif.size() + 8), 2, true);
  append(file, std::string_view("Exif\0\0", 6));
  append(file, exif);
  append(file, std::span(jpeg).subspan(2));
  return file;
}

Bytes with_webp_exif(const Bytes& webp, int width, int height, const Bytes& exif) {
  Bytes chunks = chunks_of(webp);
  append(chunks, riff_chunk("EXIF", exif));
  return extended_webp(kWebpExif, width, height, chunks);
}

Bytes webp_animation(int canvas_width, int canvas_height, int x, int y, int frame_width,
                     int frame_height, const Bytes& frame, bool has_alpha) {
  Bytes animation;
  append_number(animation, 0xFF00FF00, 4, false);  // background colour, which readers ignore
  append_number(animation, 0, 2, false);           // loops
  Bytes frame_chunk;
  for (const int number : {x / 2, y / 2, frame_width - 1, frame_height - 1})
    append_number(frame_chunk, static_cast<std::uint32_t>(number), 3, false);
  append_number(frame_chunk, 40, 3, false);  // milliseconds
  frame_chunk.push_back(0);
  append(frame_chunk, chunks_of(frame));
  Bytes chunks = riff_chunk("ANIM", animation);
  append(chunks, riff_chunk("ANMF", frame_chunk));
  append(chunks, riff_chunk("ANMF", frame_chunk));
  const int flags = kWebpAnimation | (has_alpha ? kWebpAlpha : 0);
  return extended_webp(static_cast<std::uint8_t>(flags), canvas_width, canvas_height, chunks);
}

Bytes png_that_claims(std::uint32_t width, std::uint32_t height) {
  Bytes file = encode_png({}, std::vector<std::uint16_t>{1, 2, 3});
  Bytes sides;
  append_number(sides, width, 4, true);
  append_number(sides, height, 4, true);
  std::copy(sides.begin(), sides.end(), file.begin() + 16);  // behind signature, length and type
  return file;
}

media::Image decode(const Bytes& bytes, const MediaOptions& options) {
  return media::decode_image(bytes, "image", options);
}

}  // namespace fovea::test
