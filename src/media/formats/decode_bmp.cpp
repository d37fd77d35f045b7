// BMP, read by code of its own: the one library that Debian has for it scales 5-bit samples
// otherwise than Pillow does. Rows and runs are taken from the file as they stand, so that an image
// takes no memory but its own.
//
// Runs are pairs of bytes:
//   n > 0, v   n pixels of index v, or, of RLE4, of the two halves of v in turn
//   0, 0       end of the row; the rest of it has index 0
//   0, 1       end of the image
//   0, 2       and two bytes: pixels of index 0 up to the place so far to the right and below
//   0, n       and n pixels as they are, padded to an even number of bytes of the file
#include <algorithm>
#include <utility>

#include "core/check.h"
#include "core/interrupt.h"
#include "media/formats/bmp_header.h"
#include "media/formats/decoders.h"
#include "media/formats/image_writer.h"
#include "media/profile.h"
#include "media/rgb_convert.h"

namespace fovea::media {
namespace {

/// 5 or 6 bits to 8.
std::uint8_t widen(std::uint32_t value, std::uint32_t most) {
  return static_cast<std::uint8_t>((value & most) * 255 / most);
}

void words_to_rgb(Bytes row, bool has_six_green_bits, std::uint8_t* rgb) {
  for (std::size_t i = 0; i + 1 < row.size(); i += 2, rgb += 3) {
    const std::uint32_t word = row[i] | std::uint32_t{row[i + 1]} << 8;
    rgb[0] = widen(word >> (has_six_green_bits ? 11 : 10), 31);
    rgb[1] = widen(word >> 5, has_six_green_bits ? 63 : 31);
    rgb[2] = widen(word, 31);
  }
}

void indices_to_rgb(Bytes row, const BmpLayout& layout, std::uint8_t* rgb) {
  const auto per_byte = static_cast<std::size_t>(8 / layout.bits);
  const unsigned mask = (1u << layout.bits) - 1;
  for (std::size_t x = 0; x < static_cast<std::size_t>(layout.width_px); ++x, rgb += 3) {
    const std::size_t shift = (per_byte - 1 - x % per_byte) * static_cast<std::size_t>(layout.bits);
    const std::size_t index = row[x / per_byte] >> shift & mask;
    std::copy_n(layout.colors.begin() + static_cast<std::ptrdiff_t>(3 * index), 3, rgb);
  }
}

/// @param background null: alpha is dropped.
void bytes_to_rgb(Bytes row, const BmpLayout& layout, const std::uint8_t* background,
                  std::uint8_t* rgb) {
  const auto step = static_cast<std::size_t>(layout.bits / 8);
  const auto at = [&](std::size_t pixel, std::size_t channel) {
    return row[pixel + static_cast<std::size_t>(layout.places[channel])];
  };
  for (std::size_t pixel = 0; pixel < row.size(); pixel += step, rgb += 3) {
    const std::uint8_t rgba[4] = {at(pixel, 0), at(pixel, 1), at(pixel, 2),
                                  layout.has_alpha() ? at(pixel, 3) : std::uint8_t{255}};
    if (background == nullptr)
      std::copy_n(rgba, 3, rgb);
    else
      composite_rgba(rgba, 1, background, rgb);
  }
}

void decode_rows(const EncodedImage& source, const BmpLayout& layout,
                 const std::uint8_t* background, ImageWriter& writer) {
  const std::size_t used = (static_cast<std::size_t>(layout.width_px * layout.bits) + 7) / 8;
  FOVEA_CHECK(used <= layout.row_bytes, kCorruptData, source.name, ": BMP rows of ",
              layout.row_bytes, " bytes cannot hold ", layout.width_px, " pixels");
  std::size_t at = layout.pixels_at;
  for (std::int64_t y = 0; y < layout.height_px; ++y, at += layout.row_bytes) {
    check_interrupt();
    FOVEA_CHECK(at <= source.bytes.size() && source.bytes.size() - at >= used, kCorruptData,
                source.name, ": cannot decode BMP: the file ends in row ", y, " of ",
                layout.height_px);
    const Bytes row = source.bytes.subspan(at, used);
    std::uint8_t* const rgb = writer.row(y);
    switch (layout.coding) {
      case BmpCoding::kRgb555:
      case BmpCoding::kRgb565: words_to_rgb(row, layout.coding == BmpCoding::kRgb565, rgb); break;
      case BmpCoding::kBytes: bytes_to_rgb(row, layout, background, rgb); break;
      default: indices_to_rgb(row, layout, rgb);
    }
    writer.finish_row(y);
  }
}

/// Takes the pixels of all runs, one after the other, row by row.
class RunSink {
 public:
  RunSink(const BmpLayout& layout, ImageWriter& writer)
      : layout_(layout), writer_(writer), left_(layout.width_px * layout.height_px) {}

  /// Pixels that are still to come, of the image and up to the end of the row.
  [[nodiscard]] std::int64_t left() const noexcept { return left_; }
  [[nodiscard]] std::int64_t left_of_row() const noexcept { return left_ % layout_.width_px; }

  /// Nothing happens when the image is full.
  void put(std::size_t index) {
    if (left_ == 0) return;
    if (rgb_ == nullptr) {
      check_interrupt();
      rgb_ = writer_.row(y_);
    }
    rgb_ = std::copy_n(layout_.colors.begin() + static_cast<std::ptrdiff_t>(3 * index), 3, rgb_);
    if (--left_ % layout_.width_px == 0) {
      writer_.finish_row(y_++);
      rgb_ = nullptr;
    }
  }
  void skip(std::int64_t count) {
    for (count = std::min(count, left_); count > 0; --count) put(0);
  }

 private:
  const BmpLayout& layout_;
  ImageWriter& writer_;
  std::int64_t left_;
  std::int64_t y_ = 0;
  std::uint8_t* rgb_ = nullptr;  ///< of the next pixel; null before the first one of a row
};

/// The runs of a file.
class RunReader {
 public:
  RunReader(Bytes file, const BmpLayout& layout, RunSink& sink)
      : file_(file),
        at_(std::min(file.size(), layout.pixels_at)),
        width_px_(layout.width_px),
        is_rle4_(layout.coding == BmpCoding::kRle4),
        sink_(sink) {}

  /// Ends with the image, or where the file does.
  void read() {
    while (sink_.left() > 0 && file_.size() - at_ >= 2) {
      const std::uint8_t count = file_[at_];
      const std::uint8_t value = file_[at_ + 1];
      at_ += 2;
      if (count > 0)
        repeat(count, value);
      else if (!escape(value))
        return;
    }
  }

 private:
  /// The part of a run that is beyond the end of its row is dropped.
  void repeat(std::int64_t count, std::uint8_t value) {
    const std::int64_t kept = std::clamp<std::int64_t>(width_px_ - x_, 0, count);
    for (std::int64_t i = 0; i < kept; ++i)
      sink_.put(!is_rle4_ ? value : i % 2 == 0 ? value >> 4 : value & 15);
    x_ += kept;
  }

  /// False at the end of the image.
  bool escape(std::uint8_t code) {
    switch (code) {
      case 0:
        sink_.skip(sink_.left_of_row());
        x_ = 0;
        return true;
      case 1: return false;
      case 2: return move();
      default: return copy(code);
    }
  }

  bool move() {
    if (file_.size() - at_ < 2) return false;
    sink_.skip(file_[at_] + std::int64_t{file_[at_ + 1]} * width_px_);
    at_ += 2;
    x_ = (width_px_ - sink_.left_of_row()) % width_px_;
    return true;
  }

  bool copy(std::uint8_t count) {
    const auto pixels = static_cast<std::size_t>(std::min<std::int64_t>(sink_.left(), count));
    const std::size_t num_bytes = is_rle4_ ? (pixels + 1) / 2 : pixels;
    if (file_.size() - at_ < num_bytes) return false;
    for (std::size_t i = 0; i < pixels; ++i)
      sink_.put(!is_rle4_    ? file_[at_ + i]
                : i % 2 == 0 ? file_[at_ + i / 2] >> 4
                             : file_[at_ + i / 2] & 15);
    x_ += count;
    at_ += num_bytes;
    at_ = std::min(file_.size(), at_ + at_ % 2);
    return true;
  }

  Bytes file_;
  std::size_t at_;
  std::int64_t width_px_;
  std::int64_t x_ = 0;  ///< as Pillow counts it: literal pixels may take it beyond the row
  bool is_rle4_;
  RunSink& sink_;
};

}  // namespace

ImageHeader read_bmp_header(const EncodedImage& source) {
  const BmpLayout layout = read_bmp_layout(source.bytes, source.name);
  return {{.format = ImageFormat::kBmp,
           .width_px = layout.width_px,
           .height_px = layout.height_px,
           .decode_bytes =
               ImageWriter::memory_bytes(layout.width_px, layout.height_px) + kDecoderBytes}};
}

Image decode_bmp(const EncodedImage& source, const ImageHeader& header, const MediaOptions& options,
                 std::vector<std::uint8_t> memory) {
  const BmpLayout layout = read_bmp_layout(source.bytes, source.name);
  const bool composites =
      layout.has_alpha() && rules_of(options.profile).compositing != Compositing::kNone;
  // Rows that run from the bottom up are those of a mirrored image.
  ImageWriter writer(header.info.width_px, header.info.height_px,
                     layout.top_down ? Orientation::kUpright : Orientation::kMirrorVertical,
                     std::move(memory));
  if (layout.coding == BmpCoding::kRle8 || layout.coding == BmpCoding::kRle4) {
    RunSink sink(layout, writer);
    RunReader(source.bytes, layout, sink).read();
    FOVEA_CHECK(sink.left() == 0, kCorruptData, source.name, ": cannot decode BMP: its runs end ",
                sink.left(), " pixels too early");
  } else {
    decode_rows(source, layout, composites ? options.background : nullptr, writer);
  }
  return writer.take();
}

}  // namespace fovea::media
