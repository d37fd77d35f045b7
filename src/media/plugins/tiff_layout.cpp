// The layouts of samples that Pillow reads, out of the fields of a directory.
#include "media/plugins/tiff_layout.h"

#include <algorithm>
#include <optional>
#include <span>

#include "core/check.h"

namespace fovea::media {
namespace {

/// Fields that decide how samples are read.
struct SampleFields {
  std::uint16_t photometric;
  std::uint16_t bits;
  std::uint16_t num_samples;
  std::uint16_t format;
  std::uint16_t compression;
  bool big_endian;
  bool low_bit_first;
  std::span<const std::uint16_t> extra;  ///< kinds of samples behind the colour

  [[nodiscard]] std::size_t num_colors() const noexcept { return num_samples - extra.size(); }
};

SampleFields read_sample_fields(const TiffFile& file) {
  SampleFields fields{.photometric = file.field<std::uint16_t>(TIFFTAG_PHOTOMETRIC, 0),
                      .bits = file.field<std::uint16_t>(TIFFTAG_BITSPERSAMPLE, 1),
                      .num_samples = file.field<std::uint16_t>(TIFFTAG_SAMPLESPERPIXEL, 1),
                      .format = file.field<std::uint16_t>(TIFFTAG_SAMPLEFORMAT, 1),
                      .compression = file.field<std::uint16_t>(TIFFTAG_COMPRESSION, 1),
                      .big_endian = TIFFIsBigEndian(file.get()) != 0,
                      .low_bit_first = file.field<std::uint16_t>(TIFFTAG_FILLORDER, 1) == 2,
                      .extra = {}};
  std::uint16_t count = 0;
  std::uint16_t* kinds = nullptr;
  if (file.has_entry(TIFFTAG_EXTRASAMPLES) &&
      TIFFGetField(file.get(), TIFFTAG_EXTRASAMPLES, &count, &kinds) == 1)
    fields.extra = {kinds, std::min(count, fields.num_samples)};
  return fields;
}

void check_compression(const TiffFile& file, const SampleFields& fields) {
  constexpr std::array<std::uint16_t, 9> kRead{
      COMPRESSION_NONE,          COMPRESSION_CCITTRLE, COMPRESSION_CCITTFAX3,
      COMPRESSION_CCITTFAX4,     COMPRESSION_LZW,      COMPRESSION_JPEG,
      COMPRESSION_ADOBE_DEFLATE, COMPRESSION_PACKBITS, COMPRESSION_DEFLATE};
  FOVEA_CHECK(std::ranges::find(kRead, fields.compression) != kRead.end() &&
                  TIFFIsCODECConfigured(fields.compression) == 1,
              kUnsupported, file.name(), ": TIFF compression ", fields.compression,
              " is not supported, expected none, CCITT, LZW, Deflate, PackBits or JPEG");
}

bool set_grey(const SampleFields& fields, TiffLayout& layout) {
  const bool min_is_white = fields.photometric == PHOTOMETRIC_MINISWHITE;
  const bool plain = fields.format == SAMPLEFORMAT_UINT;
  if (fields.num_samples == 2) {
    const bool has_known_extra = fields.extra.size() == 1 && (fields.extra[0] & 1) == 0 &&
                                 fields.extra[0] <= EXTRASAMPLE_UNASSALPHA;
    if (has_known_extra && fields.extra[0] == EXTRASAMPLE_UNASSALPHA)
      layout.alpha = TiffAlpha::kOfGrey;
    // Pillow mixes up alpha that is stored in a plane of its own.
    return has_known_extra && !layout.in_planes && !min_is_white && plain && fields.bits == 8 &&
           !fields.low_bit_first;
  }
  if (fields.num_samples != 1 || !fields.extra.empty()) return false;
  layout.white_is_zero = min_is_white;
  layout.is_signed = fields.format == SAMPLEFORMAT_INT;
  layout.is_float = fields.format == SAMPLEFORMAT_IEEEFP;
  if (fields.bits <= 8)
    return (plain &&
            (fields.bits == 1 || fields.bits == 2 || fields.bits == 4 || fields.bits == 8)) ||
           (layout.is_signed && fields.bits == 8 && !min_is_white && !fields.low_bit_first);
  layout.color = TiffColor::kClippedGrey;
  const bool is_raw = fields.compression == COMPRESSION_NONE;
  // Samples of 16 bits alone come in the right order: Pillow takes the others of a compressed file
  // for those of the file, whereas libtiff has put them into the order of the machine.
  layout.swaps_bytes = fields.big_endian && !is_raw && !(plain && fields.bits == 16);
  const bool is_usual = !min_is_white && !fields.low_bit_first;
  if (plain && fields.bits == 12) return !fields.big_endian && is_usual;
  if (plain && fields.bits == 16)
    return fields.big_endian ? is_usual : is_usual || min_is_white != fields.low_bit_first;
  if (plain && fields.bits == 32) {
    layout.is_signed = true;
    return !fields.big_endian && is_usual;
  }
  if (layout.is_float) return fields.bits == 32 && !fields.low_bit_first;
  return layout.is_signed && (fields.bits == 16 || fields.bits == 32) && is_usual;
}

bool set_palette(const TiffFile& file, const SampleFields& fields, TiffLayout& layout) {
  layout.color = TiffColor::kPalette;
  std::array<std::uint16_t*, 3> channels{};
  if (fields.format != SAMPLEFORMAT_UINT || fields.bits > 8 ||
      TIFFGetField(file.get(), TIFFTAG_COLORMAP, &channels[0], &channels[1], &channels[2]) != 1)
    return false;
  for (std::size_t i = 0; i < std::size_t{1} << fields.bits; ++i)
    for (std::size_t c = 0; c < 3; ++c)
      layout.colors[3 * i + c] = static_cast<std::uint8_t>(channels[c][i] >> 8);
  if (fields.num_samples == 1)
    return fields.extra.empty() &&
           (fields.bits == 1 || fields.bits == 2 || fields.bits == 4 || fields.bits == 8);
  if (fields.num_samples != 2 || fields.extra.size() != 1 || fields.bits != 8 || layout.in_planes ||
      fields.low_bit_first)
    return false;
  if (fields.extra[0] == EXTRASAMPLE_UNASSALPHA) layout.alpha = TiffAlpha::kOfGrey;
  return fields.extra[0] == EXTRASAMPLE_UNASSALPHA || fields.extra[0] == EXTRASAMPLE_UNSPECIFIED;
}

/// The first extra sample may be alpha; those behind it mean nothing.
bool set_rgb(const SampleFields& fields, TiffLayout& layout) {
  layout.color = TiffColor::kRgb;
  if (fields.format != SAMPLEFORMAT_UINT || (fields.bits != 8 && fields.bits != 16)) return false;
  if (fields.num_samples == 3)
    return fields.extra.empty() && (!fields.low_bit_first || fields.bits == 8);
  const std::size_t most = fields.bits == 8 ? 6 : 4;
  if (fields.low_bit_first || fields.num_samples < 4 || fields.num_samples > most) return false;
  if (fields.extra.empty()) {
    layout.alpha = TiffAlpha::kStraight;
    return fields.num_samples == 4;
  }
  if (fields.num_colors() != 3 || std::ranges::any_of(fields.extra.subspan(1), [](auto kind) {
        return kind != EXTRASAMPLE_UNSPECIFIED;
      }))
    return false;
  switch (fields.extra[0]) {
    case EXTRASAMPLE_UNSPECIFIED: return true;
    case EXTRASAMPLE_ASSOCALPHA: layout.alpha = TiffAlpha::kPremultiplied; return true;
    case EXTRASAMPLE_UNASSALPHA: layout.alpha = TiffAlpha::kStraight; return true;
    default: return false;
  }
}

bool set_cmyk(const SampleFields& fields, TiffLayout& layout) {
  layout.color = TiffColor::kCmyk;
  const bool means_nothing =
      std::ranges::all_of(fields.extra, [](auto kind) { return kind == EXTRASAMPLE_UNSPECIFIED; });
  const std::size_t most = fields.bits == 8 ? 2 : 0;
  return fields.format == SAMPLEFORMAT_UINT && (fields.bits == 8 || fields.bits == 16) &&
         !fields.low_bit_first && fields.num_colors() == 4 && fields.extra.size() <= most &&
         means_nothing;
}

bool set_ycbcr(const TiffFile& file, const SampleFields& fields, TiffLayout& layout) {
  if (fields.format != SAMPLEFORMAT_UINT || fields.bits != 8 || fields.num_samples != 3 ||
      fields.low_bit_first || !fields.extra.empty())
    return false;
  // Pillow converts it by tables of its own, and takes subsampled pixels for whole ones.
  if (fields.compression == COMPRESSION_NONE) return false;
  if (fields.compression == COMPRESSION_JPEG && !layout.in_planes) {
    TIFFSetField(file.get(), TIFFTAG_JPEGCOLORMODE, JPEGCOLORMODE_RGB);
    layout.color = TiffColor::kRgb;
    return true;
  }
  layout.color = TiffColor::kByLibrary;
  return !layout.in_planes;
}

bool set_color(const TiffFile& file, const SampleFields& fields, TiffLayout& layout) {
  switch (fields.photometric) {
    case PHOTOMETRIC_MINISWHITE:
    case PHOTOMETRIC_MINISBLACK: return set_grey(fields, layout);
    case PHOTOMETRIC_PALETTE: return set_palette(file, fields, layout);
    case PHOTOMETRIC_RGB: return set_rgb(fields, layout);
    case PHOTOMETRIC_SEPARATED: return set_cmyk(fields, layout);
    case PHOTOMETRIC_YCBCR: return set_ycbcr(file, fields, layout);
    default: return false;
  }
}

/// The orientation of the field, or if the file has none, of its XMP packet.
Orientation read_tiff_orientation(const TiffFile& file) {
  std::uint16_t code = 0;
  if (TIFFGetField(file.get(), TIFFTAG_ORIENTATION, &code) == 1)
    return code >= 1 && code <= 8 ? static_cast<Orientation>(code) : Orientation::kUpright;
  std::uint32_t count = 0;
  const void* packet = nullptr;
  if (TIFFGetField(file.get(), TIFFTAG_XMLPACKET, &count, &packet) != 1)
    return Orientation::kUpright;
  return read_orientation({}, {static_cast<const std::uint8_t*>(packet), count});
}

void set_chunks(const TiffFile& file, TiffLayout& layout) {
  layout.tiled = TIFFIsTiled(file.get()) != 0;
  layout.chunk_width_px = layout.width_px;
  if (layout.tiled) {
    layout.chunk_width_px = file.field<std::uint32_t>(TIFFTAG_TILEWIDTH, 0);
    layout.chunk_height_px = file.field<std::uint32_t>(TIFFTAG_TILELENGTH, 0);
  } else {
    layout.chunk_height_px = std::min<std::int64_t>(
        file.field<std::uint32_t>(TIFFTAG_ROWSPERSTRIP, UINT32_MAX), layout.height_px);
  }
  FOVEA_CHECK(layout.chunk_width_px > 0 && layout.chunk_height_px > 0, kCorruptData, file.name(),
              ": expected TIFF strips or tiles of at least 1 x 1 pixels, got ",
              layout.chunk_width_px, " x ", layout.chunk_height_px);
  const std::uint64_t pixels = static_cast<std::uint64_t>(layout.chunk_width_px) *
                               static_cast<std::uint64_t>(layout.chunk_height_px);
  if (layout.color == TiffColor::kByLibrary) {
    constexpr std::uint64_t kRgbaBytes = 4;
    FOVEA_CHECK(pixels <= UINT32_MAX, kCorruptData, file.name(), ": TIFF strips or tiles of ",
                pixels, " pixels are too large");
    layout.chunk_bytes = pixels * kRgbaBytes;
    return;
  }
  const std::uint64_t bytes =
      layout.tiled ? TIFFTileSize64(file.get()) : TIFFStripSize64(file.get());
  FOVEA_CHECK(bytes == layout.row_bytes() * static_cast<std::uint64_t>(layout.chunk_height_px),
              kCorruptData, file.name(), ": expected TIFF strips or tiles of ",
              layout.row_bytes() * static_cast<std::uint64_t>(layout.chunk_height_px),
              " bytes, got ", bytes);
  layout.chunk_bytes = bytes;
}

}  // namespace

TiffLayout read_tiff_layout(const TiffFile& file) {
  TiffLayout layout;
  layout.width_px = file.field<std::uint32_t>(TIFFTAG_IMAGEWIDTH, 0);
  layout.height_px = file.field<std::uint32_t>(TIFFTAG_IMAGELENGTH, 0);
  if (layout.width_px == 0 || layout.height_px == 0) return layout;  // refused as such
  const SampleFields fields = read_sample_fields(file);
  check_compression(file, fields);
  layout.in_planes = file.field<std::uint16_t>(TIFFTAG_PLANARCONFIG, 1) == PLANARCONFIG_SEPARATE &&
                     fields.num_samples > 1;
  layout.bits = fields.bits;
  layout.num_samples = fields.num_samples;
  FOVEA_CHECK(set_color(file, fields, layout) && !(layout.in_planes && fields.bits % 8 != 0),
              kUnsupported, file.name(), ": TIFF with ", fields.num_samples, " samples of ",
              fields.bits, " bits, photometric interpretation ", fields.photometric,
              " and sample format ", fields.format, " is not supported");
  layout.orientation = read_tiff_orientation(file);
  set_chunks(file, layout);
  return layout;
}

}  // namespace fovea::media
