// A BMP file, all numbers little endian:
//    0   2  "BM"
//   10   4  where the pixels are; 0: behind all that is described here
//   14   4  size of the header that follows, itself included: 12 (OS/2), 40, 52, 56, 64, 108 or 124
// OS/2: width 2, height 2, planes 2, bits 2. The others:
//   18   4  width
//   22   4  height; negative if its highest byte is FF, and the rows run from the top down
//   28   2  bits per pixel
//   30   4  compression: 0 rows, 1 RLE8, 2 RLE4, 3 rows of bit fields
//   46   4  colours of the palette; 0: all that fit into the bits
//   54  12  masks of red, green and blue; part of the header from 52 on, otherwise behind it
//   66   4  mask of alpha in headers from 56 on
// Then the palette, BGR of OS/2 and BGR0 otherwise.
#include "media/formats/bmp_header.h"

#include <algorithm>
#include <optional>

#include "core/check.h"

namespace fovea::media {
namespace {

constexpr std::size_t kBmpFileHeaderBytes = 14;
constexpr std::uint32_t kOs2HeaderBytes = 12;
constexpr std::uint32_t kMaskedHeaderBytes = 52;  // holds three masks
constexpr std::uint32_t kAlphaHeaderBytes = 56;   // and the one of alpha
constexpr std::array<std::uint32_t, 7> kBmpHeaderBytes{
    kOs2HeaderBytes, 40, kMaskedHeaderBytes, kAlphaHeaderBytes, 64, 108, 124};

enum BmpCompression : std::uint32_t { kRows = 0, kRunsOf8 = 1, kRunsOf4 = 2, kBitFields = 3 };

/// Little-endian numbers of a file that may be too short for them.
class BmpReader {
 public:
  BmpReader(Bytes file, std::string_view name) : file_(file), name_(name) {}

  [[nodiscard]] std::uint32_t read(std::size_t offset, std::size_t count) const {
    FOVEA_CHECK(offset + count <= file_.size(), kCorruptData, name_,
                ": expected a BMP header of at least ", offset + count, " bytes, got ",
                file_.size());
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < count; ++i) value |= std::uint32_t{file_[offset + i]} << 8 * i;
    return value;
  }

 private:
  Bytes file_;
  std::string_view name_;
};

/// The numbers of a header, in one form for all kinds.
struct BmpFields {
  std::uint32_t header_bytes;
  std::uint32_t width;
  std::uint32_t height;
  bool top_down = false;
  std::uint32_t bits;
  std::uint32_t compression = kRows;
  std::uint64_t num_colors;
  std::size_t color_bytes = 3;

  [[nodiscard]] std::size_t end() const { return kBmpFileHeaderBytes + header_bytes; }
};

BmpFields read_fields(const BmpReader& reader, std::string_view name) {
  const std::uint32_t header_bytes = reader.read(kBmpFileHeaderBytes, 4);
  FOVEA_CHECK(std::ranges::find(kBmpHeaderBytes, header_bytes) != kBmpHeaderBytes.end(),
              kUnsupported, name, ": BMP headers of ", header_bytes,
              " bytes are not supported, expected 12, 40, 52, 56, 64, 108 or 124");
  (void)reader.read(kBmpFileHeaderBytes + header_bytes - 1, 1);  // all of it is there
  if (header_bytes == kOs2HeaderBytes) {
    const std::uint32_t bits = reader.read(24, 2);
    return {.header_bytes = header_bytes,
            .width = reader.read(18, 2),
            .height = reader.read(20, 2),
            .bits = bits,
            .num_colors = bits <= 8 ? 1u << bits : 0};
  }
  const bool top_down = reader.read(25, 1) == 0xFF;
  const std::uint32_t height = reader.read(22, 4);
  const std::uint32_t bits = reader.read(28, 2);
  const std::uint32_t num_colors = reader.read(46, 4);
  return {.header_bytes = header_bytes,
          .width = reader.read(18, 4),
          .height = top_down ? ~height + 1 : height,
          .top_down = top_down,
          .bits = bits,
          .compression = reader.read(30, 4),
          .num_colors = num_colors != 0 ? num_colors
                        : bits <= 8     ? 1u << bits
                                        : 0,
          .color_bytes = 4};
}

struct ByteFields {
  std::array<std::uint32_t, 4> masks;  ///< of red, green, blue and alpha
  std::array<std::int8_t, 4> places;
};

/// The layouts of 32 bits that Pillow reads; what its names call X is no alpha.
constexpr std::int8_t kNone = BmpLayout::kOpaque;
constexpr std::array kByteFields{
    ByteFields{{0xFF0000, 0xFF00, 0xFF, 0}, {2, 1, 0, kNone}},
    ByteFields{{0xFF000000, 0xFF0000, 0xFF00, 0}, {3, 2, 1, kNone}},
    ByteFields{{0xFF000000, 0xFF00, 0xFF, 0}, {3, 1, 0, kNone}},
    ByteFields{{0xFF000000, 0xFF0000, 0xFF00, 0xFF}, {3, 2, 1, 0}},
    ByteFields{{0xFF, 0xFF00, 0xFF0000, 0xFF000000}, {0, 1, 2, 3}},
    ByteFields{{0xFF0000, 0xFF00, 0xFF, 0xFF000000}, {2, 1, 0, 3}},
    ByteFields{{0xFF000000, 0xFF00, 0xFF, 0xFF0000}, {3, 1, 0, 2}},
    ByteFields{{0, 0, 0, 0}, {2, 1, 0, 3}},
};

constexpr std::array<std::uint32_t, 3> kMasks555{0x7C00, 0x3E0, 0x1F};
constexpr std::array<std::uint32_t, 3> kMasks565{0xF800, 0x7E0, 0x1F};
constexpr std::array<std::uint32_t, 3> kMasks888{0xFF0000, 0xFF00, 0xFF};

void choose_bit_fields(const BmpReader& reader, const BmpFields& fields, std::string_view name,
                       BmpLayout& layout) {
  constexpr std::size_t kMasksAt = 54;
  const std::size_t at = fields.header_bytes >= kMaskedHeaderBytes ? kMasksAt : fields.end();
  const std::array<std::uint32_t, 3> rgb{reader.read(at, 4), reader.read(at + 4, 4),
                                         reader.read(at + 8, 4)};
  const std::uint32_t alpha =
      fields.header_bytes >= kAlphaHeaderBytes ? reader.read(at + 12, 4) : 0;
  if (fields.header_bytes < kMaskedHeaderBytes) layout.pixels_at += 3 * 4;
  const auto is_known = [&](const ByteFields& known) {
    return std::equal(rgb.begin(), rgb.end(), known.masks.begin()) && alpha == known.masks[3];
  };
  const auto* const known = std::ranges::find_if(kByteFields, is_known);
  if (fields.bits == 32 && known != kByteFields.end()) {
    layout.places = known->places;
  } else if (fields.bits == 16 && (rgb == kMasks555 || rgb == kMasks565)) {
    layout.coding = rgb == kMasks555 ? BmpCoding::kRgb555 : BmpCoding::kRgb565;
  } else {
    FOVEA_CHECK(fields.bits == 24 && rgb == kMasks888, kUnsupported, name,
                ": BMP bit fields of this layout are not supported");
  }
}

/// Whether a palette is the grey scale from 0 on, of black and white if it has two colours.
bool is_grey_scale(Bytes palette, const BmpFields& fields) {
  if (palette.size() < fields.num_colors * fields.color_bytes) return false;
  for (std::size_t i = 0; i < fields.num_colors; ++i) {
    const auto level = static_cast<std::uint8_t>(fields.num_colors == 2 ? i * 255 : i);
    const Bytes color = palette.subspan(i * fields.color_bytes, 3);
    if (std::ranges::count(color, level) != 3) return false;
  }
  return true;
}

/// As Pillow does, rows under a grey scale are read as those of a grey image: of 1 bit if it has at
/// most two colours, of 8 if it has more, whatever the header says.
void choose_colors(Bytes file, const BmpFields& fields, std::string_view name, BmpLayout& layout) {
  constexpr std::size_t kMostColors = 65536;
  FOVEA_CHECK(fields.num_colors <= kMostColors, kCorruptData, name,
              ": expected a BMP palette of at most ", kMostColors, " colours, got ",
              fields.num_colors);
  const std::size_t palette_bytes = fields.num_colors * fields.color_bytes;
  const Bytes behind = file.subspan(std::min(file.size(), fields.end()));
  const Bytes palette = behind.first(std::min(behind.size(), palette_bytes));
  layout.pixels_at += palette.size();
  if (is_grey_scale(palette, fields)) {
    const bool is_bilevel = fields.num_colors <= 2;
    layout.bits = is_bilevel ? 1 : 8;
    for (std::size_t i = 0; i < 256; ++i) {
      const auto level = static_cast<std::uint8_t>(is_bilevel && i > 0 ? 255 : i);
      std::fill_n(layout.colors.begin() + static_cast<std::ptrdiff_t>(3 * i), 3, level);
    }
    return;
  }
  const std::size_t count = palette.size() / fields.color_bytes;
  FOVEA_CHECK(count <= 256, kCorruptData, name,
              ": expected a BMP palette of at most 256 colours, got ", count);
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t c = 0; c < 3; ++c)
      layout.colors[3 * i + c] = palette[i * fields.color_bytes + 2 - c];
}

std::optional<BmpCoding> coding_of(const BmpFields& fields) {
  switch (fields.compression) {
    case kRows:
    case kBitFields:
      return fields.bits <= 8    ? BmpCoding::kIndices
             : fields.bits == 16 ? BmpCoding::kRgb555
                                 : BmpCoding::kBytes;
    case kRunsOf8: return BmpCoding::kRle8;
    case kRunsOf4: return BmpCoding::kRle4;
    default: return std::nullopt;
  }
}

/// Checked against what Pillow reads. The palette and the masks are still to be looked at.
BmpLayout start_layout(const BmpFields& fields, std::string_view name) {
  constexpr std::array<std::uint32_t, 6> kBits{1, 4, 8, 16, 24, 32};
  FOVEA_CHECK(std::ranges::find(kBits, fields.bits) != kBits.end(), kUnsupported, name,
              ": BMP with ", fields.bits, " bits per pixel is not supported");
  const std::optional<BmpCoding> coding = coding_of(fields);
  FOVEA_CHECK(coding, kUnsupported, name, ": BMP compression ", fields.compression,
              " is not supported");
  const bool has_runs = *coding == BmpCoding::kRle8 || *coding == BmpCoding::kRle4;
  FOVEA_CHECK((!has_runs && fields.compression != kBitFields) || (fields.bits <= 8) == has_runs,
              kUnsupported, name, ": BMP compression ", fields.compression, " of ", fields.bits,
              " bits per pixel is not supported");
  return {.width_px = fields.width,
          .height_px = fields.height,
          .top_down = fields.top_down,
          .coding = *coding,
          .bits = static_cast<int>(fields.bits),
          .row_bytes = (std::size_t{fields.width} * fields.bits + 31) / 32 * 4,
          .pixels_at = fields.end(),
          .places = {2, 1, 0, BmpLayout::kOpaque}};
}

}  // namespace

BmpLayout read_bmp_layout(Bytes file, std::string_view name) {
  const BmpReader reader(file, name);
  const BmpFields fields = read_fields(reader, name);
  BmpLayout layout = start_layout(fields, name);
  if (fields.compression == kBitFields) choose_bit_fields(reader, fields, name, layout);
  if (fields.bits <= 8) choose_colors(file, fields, name, layout);
  const std::size_t named = reader.read(10, 4);
  if (named == 0) return layout;
  // A place right behind the header would be in the palette: what is meant is its end.
  const bool skips_palette = fields.bits <= 8 && named == fields.end();
  layout.pixels_at = named + (skips_palette ? fields.num_colors * fields.color_bytes : 0);
  return layout;
}

}  // namespace fovea::media
