// PNG through libpng's row interface: the simplified interface would apply gamma tags, unlike
// Pillow. A file is a signature of 8 bytes, then chunks: length 4 (big endian, of the payload),
// type 4, payload, CRC 4. The first chunk is
//   IHDR: width 4, height 4, bits 1, colour type 1, compression 1, filter 1, interlace 1
// libpng passes over all ancillary chunks, so that no text or profile costs memory or changes a
// pixel; orientation and transparency are found by png_metadata.h. The passes of an interlaced file
// are put together here, because libpng would want memory for all rows as the file holds them.
// Bytes behind the last row are not read, and checksums of pixels are not compared, as in Pillow:
// files whose end is missing or damaged are whole images. zlib compares its own checksum where it
// meets it.
//
// libpng reports errors by longjmp, which skips destructors. Code that it can leave in this way is
// a function object that owns nothing, run by run_guarded().
#include <png.h>

#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "core/check.h"
#include "core/interrupt.h"
#include "media/bytes.h"
#include "media/formats/decoders.h"
#include "media/formats/image_writer.h"
#include "media/formats/png_metadata.h"
#include "media/profile.h"
#include "media/rgb_convert.h"

namespace fovea::media {
namespace {

constexpr std::size_t kIhdrBytes = 13;

/// libpng keeps two rows of up to 8 bytes per pixel, this file one as the file holds it and RGB.
constexpr std::size_t kRowBytesPerPixel = 8 + 8 + 8 + 3;

bool has_type(Bytes chunk, const char* type) { return std::memcmp(chunk.data() + 4, type, 4) == 0; }

/// The bytes that libpng reads, and its error message.
struct Input {
  Bytes rest;
  bool row_is_complete = false;  ///< the row that is being read; nothing behind it is needed
  char reason[128] = "";
};

void read_bytes(png_structp png, png_bytep out, std::size_t count) {
  Input& input = *static_cast<Input*>(png_get_io_ptr(png));
  if (count > input.rest.size()) png_error(png, "the file is truncated");
  if (input.row_is_complete) png_error(png, "bytes behind a row are not needed");
  std::memcpy(out, input.rest.data(), count);
  input.rest = input.rest.subspan(count);
}

[[noreturn]] void keep_reason_and_leave(png_structp png, png_const_charp reason) {
  Input& input = *static_cast<Input*>(png_get_error_ptr(png));
  std::strncpy(input.reason, reason, sizeof(input.reason) - 1);
  png_longjmp(png, 1);
}

/// Called with every row before libpng looks for what follows the last one, which would cost time
/// out of proportion to the image if the pixel data went on.
void mark_row_complete(png_structp png, png_row_infop, png_bytep) {
  static_cast<Input*>(png_get_io_ptr(png))->row_is_complete = true;
}

void ignore_warning(png_structp, png_const_charp) {}

/// Runs calls of libpng; false if one of them failed. `calls` must own nothing with a destructor.
template <class Calls>
[[nodiscard]] bool run_guarded(png_structp png, const Calls& calls) {
  if (setjmp(png_jmpbuf(png)) != 0) return false;
  calls();
  return true;
}

/// Formats of rows that libpng returns; others are expanded to RGB by its own transformations.
enum class RowKind { kRgb, kRgba, kGrey16, kIndices };

/// Pixels as the file holds them.
struct PixelLayout {
  int color_type;  ///< PNG_COLOR_TYPE_*
  int bits;        ///< per sample
};

/// A row that a file stores: of the image, or of one pass over it.
struct StoredRow {
  std::int64_t y;  ///< in the image
  std::int64_t first_x;
  std::int64_t step_x;
  std::int64_t num_pixels;
};

/// How transparency is treated.
struct Transparency {
  Compositing compositing;
  bool by_palette;  ///< a palette, if there is one, has transparent entries to composite
};

/// The rows of the seven passes of an interlaced file, in their order; passes without pixels have
/// none.
template <class Visit>
void for_each_row_of_passes(const ImageInfo& size, const Visit& visit) {
  const auto width = static_cast<png_uint_32>(size.width_px);
  for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; ++pass) {
    const std::int64_t num_pixels = PNG_PASS_COLS(width, pass);
    if (num_pixels == 0) continue;
    for (std::int64_t y = PNG_PASS_START_ROW(pass); y < size.height_px;
         y += PNG_PASS_ROW_OFFSET(pass))
      visit(StoredRow{y, PNG_PASS_START_COL(pass), PNG_PASS_COL_OFFSET(pass), num_pixels});
  }
}

/// The reading half of libpng for one file.
class PngReader {
 public:
  explicit PngReader(const EncodedImage& source)
      : name_(source.name),
        input_{source.bytes},
        png_(png_create_read_struct(PNG_LIBPNG_VER_STRING, &input_, keep_reason_and_leave,
                                    ignore_warning)) {
    if (png_ != nullptr) info_ = png_create_info_struct(png_);
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw Error(ErrorCode::kOutOfMemory, cat(name_, ": cannot make a PNG decoder"));
    }
  }
  ~PngReader() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  /// Reads up to the pixels and chooses the transformations. Call once, first.
  void start(const ImageInfo& size, const Transparency& transparency) {
    check(run_guarded(png_, [&] {
      png_set_user_limits(png_, static_cast<png_uint_32>(size.width_px),
                          static_cast<png_uint_32>(size.height_px));
      png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
      const png_byte known[] = "tRNS";
      png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, known, 1);
      // Some encoders write a smaller window than they refer to.
      (void)png_set_option(png_, PNG_MAXIMUM_INFLATE_WINDOW, PNG_OPTION_ON);
      png_set_read_fn(png_, &input_, read_bytes);
      png_read_info(png_, info_);
      png_set_crc_action(png_, PNG_CRC_QUIET_USE, PNG_CRC_NO_CHANGE);  // header and palette passed
      png_set_read_user_transform_fn(png_, mark_row_complete);
      choose_transformations(transparency);
      png_read_update_info(png_, info_);
    }));
  }

  [[nodiscard]] RowKind row_kind() const noexcept { return row_kind_; }
  [[nodiscard]] bool is_interlaced() const {
    return png_get_interlace_type(png_, info_) == PNG_INTERLACE_ADAM7;
  }
  [[nodiscard]] std::size_t row_bytes() const { return png_get_rowbytes(png_, info_); }
  [[nodiscard]] const PixelLayout& layout() const noexcept { return layout_; }
  [[nodiscard]] std::span<const png_color> palette() const {
    png_colorp colors = nullptr;
    int count = 0;
    if (png_get_PLTE(png_, info_, &colors, &count) == 0) return {};
    return {colors, static_cast<std::size_t>(count)};
  }

  /// Reads all rows. `memory(row)` gives the memory of a row, row_bytes() whatever its number of
  /// pixels; `done(row)` is called when it is complete.
  template <class Memory, class Done>
  void read_rows(const ImageInfo& size, const Memory& memory, const Done& done) {
    const auto read_row = [&](const StoredRow& row) {
      check_interrupt();
      input_.row_is_complete = false;
      const png_bytep pixels = memory(row);
      const bool succeeded = run_guarded(png_, [&] { png_read_row(png_, pixels, nullptr); });
      check(succeeded || input_.row_is_complete);
      done(row);
    };
    if (is_interlaced())
      for_each_row_of_passes(size, read_row);
    else
      for (std::int64_t y = 0; y < size.height_px; ++y) read_row({y, 0, 1, size.width_px});
  }

 private:
  void choose_transformations(const Transparency& transparency) {
    const png_byte color = png_get_color_type(png_, info_);
    const png_byte bits = png_get_bit_depth(png_, info_);
    layout_ = {color, bits};
    if (color == PNG_COLOR_TYPE_PALETTE && transparency.by_palette) {
      png_set_packing(png_);  // one byte per index
      row_kind_ = RowKind::kIndices;
      return;
    }
    if (color == PNG_COLOR_TYPE_GRAY && bits == 16) {
      row_kind_ = RowKind::kGrey16;
      return;
    }
    if (color == PNG_COLOR_TYPE_PALETTE) png_set_palette_to_rgb(png_);
    if (color == PNG_COLOR_TYPE_GRAY) png_set_expand_gray_1_2_4_to_8(png_);
    if (bits == 16) png_set_strip_16(png_);
    if ((color & PNG_COLOR_MASK_COLOR) == 0) png_set_gray_to_rgb(png_);
    if ((color & PNG_COLOR_MASK_ALPHA) == 0) return;
    // Pillow opens 8-bit grey with alpha as LA, but 16-bit grey with alpha as RGBA.
    const bool is_rgba = color == PNG_COLOR_TYPE_RGB_ALPHA || bits == 16;
    if (transparency.compositing == Compositing::kEvery ||
        (transparency.compositing == Compositing::kRgba && is_rgba))
      row_kind_ = RowKind::kRgba;
    else
      png_set_strip_alpha(png_);
  }

  void check(bool succeeded) const {
    FOVEA_CHECK(succeeded, kCorruptData, name_, ": cannot decode PNG: ", input_.reason);
  }

  std::string_view name_;
  Input input_;
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
  RowKind row_kind_ = RowKind::kRgb;
  PixelLayout layout_{};
};

/// Turns rows as libpng returns them into RGB rows on the background.
class RowConverter {
 public:
  /// @param reader started; must outlive the converter. @throws Error(kCorruptData) for a tRNS
  /// chunk that is too short.
  RowConverter(const PngReader& reader, std::optional<Bytes> transparency,
               const MediaOptions& options, std::string_view name)
      : kind_(reader.row_kind()), background_(options.background) {
    if (kind_ == RowKind::kIndices)
      fill_table(reader.palette(), *transparency);
    else if (transparency && kind_ != RowKind::kRgba)
      find_key(reader.layout(), *transparency, name);
  }

  /// @param raw one row of the reader's kind; may be `rgb` itself if that is kRgb.
  void convert(const std::uint8_t* raw, std::size_t num_pixels, std::uint8_t* rgb) const noexcept {
    if (kind_ == RowKind::kRgba) return composite_rgba(raw, num_pixels, background_, rgb);
    if (kind_ == RowKind::kGrey16) clip_grey16(raw, num_pixels, rgb);
    if (kind_ == RowKind::kIndices)
      for (std::size_t i = 0; i < num_pixels; ++i)
        rgb = std::copy_n(table_.data() + std::size_t{raw[i]} * 3, 3, rgb);
    if (key_) replace_color(rgb, num_pixels, key_->data(), background_);
  }

 private:
  /// The colours of a palette on the background. What either list leaves out is black, or opaque.
  void fill_table(std::span<const png_color> palette, Bytes alpha) {
    constexpr std::size_t kEntries = 256;
    std::array<std::uint8_t, kEntries * 4> rgba{};
    for (std::size_t i = 0; i < kEntries; ++i) {
      if (i < palette.size()) {
        const std::array color{palette[i].red, palette[i].green, palette[i].blue};
        std::copy(color.begin(), color.end(), rgba.begin() + static_cast<std::ptrdiff_t>(4 * i));
      }
      rgba[4 * i + 3] = i < alpha.size() ? alpha[i] : 255;
    }
    composite_rgba(rgba.data(), kEntries, background_, table_.data());
  }

  /// The transparent colour. As in Pillow it is the low bytes of the entry, compared with pixels
  /// that are 8-bit RGB already, whatever number of bits the file has; 1-bit grey alone is scaled.
  void find_key(const PixelLayout& layout, Bytes entry, std::string_view name) {
    const bool grey = layout.color_type == PNG_COLOR_TYPE_GRAY;
    const std::size_t entry_bytes = grey ? 2 : 6;
    FOVEA_CHECK(entry.size() >= entry_bytes, kCorruptData, name, ": expected a tRNS chunk of ",
                entry_bytes, " bytes, got ", entry.size());
    if (!grey)
      key_ = {entry[1], entry[3], entry[5]};
    else if (layout.bits > 1)
      key_ = {entry[1], entry[1], entry[1]};
    else
      key_.emplace().fill((entry[0] | entry[1]) != 0 ? 255 : 0);
  }

  RowKind kind_;
  const std::uint8_t* background_;
  std::array<std::uint8_t, 256 * 3> table_{};
  std::optional<std::array<std::uint8_t, 3>> key_;
};

}  // namespace

ImageHeader read_png_header(const EncodedImage& source) {
  const Bytes file = source.bytes;
  FOVEA_CHECK(file.size() >= kPngSignatureBytes + kPngChunkFrameBytes + kIhdrBytes, kCorruptData,
              source.name, ": expected a PNG header of ",
              kPngSignatureBytes + kPngChunkFrameBytes + kIhdrBytes, " bytes, got ", file.size());
  const Bytes header = file.subspan(kPngSignatureBytes);
  FOVEA_CHECK(big_endian_u32(header) == kIhdrBytes && has_type(header, "IHDR"), kCorruptData,
              source.name, ": PNG does not start with an IHDR chunk of ", kIhdrBytes, " bytes");
  const std::int64_t width = big_endian_u32(header.subspan(8));
  const std::int64_t height = big_endian_u32(header.subspan(12));
  return {{.format = ImageFormat::kPng,
           .width_px = width,
           .height_px = height,
           .decode_bytes = ImageWriter::memory_bytes(width, height) +
                           static_cast<std::size_t>(width) * kRowBytesPerPixel + kDecoderBytes},
          read_png_orientation(file, source.name)};
}

Image decode_png(const EncodedImage& source, const ImageHeader& header, const MediaOptions& options,
                 std::vector<std::uint8_t> memory) {
  const ImageInfo& info = header.info;
  const Compositing compositing = rules_of(options.profile).compositing;
  const std::optional<Bytes> transparency = compositing == Compositing::kEvery
                                                ? read_png_transparency(source.bytes, source.name)
                                                : std::nullopt;
  PngReader reader(source);
  reader.start(info, {compositing, transparency.has_value()});
  const RowConverter converter(reader, transparency, options, source.name);
  const std::size_t rgb_row_bytes = static_cast<std::size_t>(info.width_px) * 3;
  const bool is_rgb = reader.row_kind() == RowKind::kRgb;
  FOVEA_CHECK(!is_rgb || reader.row_bytes() == rgb_row_bytes, kInternal, "PNG row of ",
              reader.row_bytes(), " bytes for ", info.width_px, " RGB pixels");

  ImageWriter writer(info.width_px, info.height_px, header.orientation, std::move(memory));
  const bool in_passes = reader.is_interlaced();
  std::vector<std::uint8_t> row_of_pass(in_passes ? rgb_row_bytes : 0);
  std::vector<std::uint8_t> raw_row(is_rgb ? 0 : reader.row_bytes());
  const auto rgb = [&](const StoredRow& row) {
    return in_passes ? row_of_pass.data() : writer.row(row.y);
  };
  const auto raw = [&](const StoredRow& row) { return is_rgb ? rgb(row) : raw_row.data(); };
  reader.read_rows(info, raw, [&](const StoredRow& row) {
    converter.convert(raw(row), static_cast<std::size_t>(row.num_pixels), rgb(row));
    if (in_passes)
      writer.store(row.y, row.first_x, row.step_x, row.num_pixels, row_of_pass.data());
    else
      writer.finish_row(row.y);
  });
  return writer.take();
}

}  // namespace fovea::media
