// A GIF file, all numbers little endian:
//   0   6  "GIF87a" or "GIF89a"
//   6   4  width and height of the logical screen
//   10  1  80: a global palette follows; its low 3 bits: it has 2 << n colours
//   11  2  background, ratio of sides
// Then the palette, and blocks:
//   "!"  kind 1, data: an extension; of kind F9 flags 1 (01: transparency), delay 2, index 1
//   ","  x 2, y 2, width 2, height 2, flags 1 (as above; 40: interlaced), palette, codes: a frame
//   ";"  the end
// Data are pieces of a length, 1 byte, and so many bytes; the last one is empty. Bytes between
// blocks that begin none are passed over.
#include "media/plugins/gif_frame.h"

#include <algorithm>

#include "core/check.h"

namespace fovea::media {
namespace {

constexpr std::size_t kScreenBytes = 13;
constexpr std::size_t kFrameBytes = 9;
constexpr std::uint8_t kLeastCodeBits = 2;
constexpr std::uint8_t kMostCodeBits = 8;
constexpr std::uint8_t kHasPalette = 0x80;
constexpr std::uint8_t kIsInterlaced = 0x40;
constexpr std::uint8_t kHasTransparency = 0x01;
constexpr std::uint8_t kGraphicControl = 0xF9;
constexpr std::uint8_t kComment = 0xFE;
constexpr std::uint8_t kApplication = 0xFF;

std::int64_t number_at(Bytes bytes, std::size_t at) {
  return bytes[at] | std::int64_t{bytes[at + 1]} << 8;
}

class GifReader {
 public:
  GifReader(Bytes file, std::string_view name) : rest_(file), size_(file.size()), name_(name) {}

  GifFrame read() {
    const Bytes screen = take(kScreenBytes);
    frame_.canvas_width_px = number_at(screen, 6);
    frame_.canvas_height_px = number_at(screen, 8);
    set_grey_scale();
    if ((screen[10] & kHasPalette) != 0) read_palette(screen[10]);
    while (true) {
      const std::uint8_t kind = take(1)[0];
      FOVEA_CHECK(kind != ';', kCorruptData, name_, ": holds no frame of a GIF image");
      if (kind == '!') read_extension();
      if (kind == ',') break;
    }
    read_frame();
    return frame_;
  }

 private:
  Bytes take(std::size_t count) {
    FOVEA_CHECK(rest_.size() >= count, kCorruptData, name_,
                ": the GIF file ends in front of the pixels of its first frame");
    const Bytes taken = rest_.first(count);
    rest_ = rest_.subspan(count);
    return taken;
  }
  Bytes take_piece() { return take(take(1)[0]); }
  void skip_pieces() {
    while (!take_piece().empty()) {
    }
  }

  /// As in Pillow, an extension without data takes the next piece for its own.
  void read_extension() {
    const std::uint8_t kind = take(1)[0];
    const Bytes piece = take_piece();
    if (kind == kComment) {
      if (!piece.empty()) skip_pieces();
      return;
    }
    if (kind == kGraphicControl && !piece.empty()) {
      constexpr std::size_t kDelayEnd = 3;
      const bool has_transparency = (piece[0] & kHasTransparency) != 0;
      const std::size_t needed = kDelayEnd + (has_transparency ? 1 : 0);
      FOVEA_CHECK(piece.size() >= needed, kCorruptData, name_,
                  ": expected a GIF graphic control of at least ", needed, " bytes, got ",
                  piece.size());
      if (has_transparency) frame_.transparent = piece[3];
    }
    constexpr std::string_view kLoop = "NETSCAPE2.0";
    if (kind == kApplication && text_of(piece).starts_with(kLoop)) (void)take_piece();
    skip_pieces();
  }

  /// Index i is grey i: the colours of a file without a palette.
  void set_grey_scale() {
    for (std::size_t i = 0; i < frame_.colors.size(); ++i)
      frame_.colors[i] = static_cast<std::uint8_t>(i / 3);
  }

  /// A palette that is the beginning of the grey scale counts as none: as in Pillow, the colours
  /// stay those of the file, or the whole grey scale if it has none either.
  void read_palette(std::uint8_t flags) {
    constexpr int kBitsMask = 7;
    const Bytes palette = take(std::size_t{3} << ((flags & kBitsMask) + 1));
    bool is_grey = true;
    for (std::size_t i = 0; i < palette.size(); ++i) is_grey = is_grey && palette[i] == i / 3;
    if (is_grey) return;
    frame_.colors = {};
    std::copy(palette.begin(), palette.end(), frame_.colors.begin());
  }

  void read_frame() {
    const Bytes head = take(kFrameBytes);
    frame_.x_px = number_at(head, 0);
    frame_.y_px = number_at(head, 2);
    frame_.width_px = number_at(head, 4);
    frame_.height_px = number_at(head, 6);
    FOVEA_CHECK(frame_.width_px > 0 && frame_.height_px > 0, kCorruptData, name_,
                ": expected a GIF frame of at least 1 x 1 pixels, got ", frame_.width_px, " x ",
                frame_.height_px);
    frame_.canvas_width_px = std::max(frame_.canvas_width_px, frame_.x_px + frame_.width_px);
    frame_.canvas_height_px = std::max(frame_.canvas_height_px, frame_.y_px + frame_.height_px);
    frame_.interlaced = (head[8] & kIsInterlaced) != 0;
    if ((head[8] & kHasPalette) != 0) read_palette(head[8]);
    frame_.data_at = size_ - rest_.size();
    const std::uint8_t code_bits = take(1)[0];
    FOVEA_CHECK(code_bits >= kLeastCodeBits && code_bits <= kMostCodeBits, kCorruptData, name_,
                ": expected GIF codes of ", int{kLeastCodeBits}, " to ", int{kMostCodeBits},
                " bits, got ", int{code_bits});
  }

  Bytes rest_;
  std::size_t size_;
  std::string_view name_;
  GifFrame frame_;
};

}  // namespace

GifFrame read_gif_frame(Bytes file, std::string_view name) { return GifReader(file, name).read(); }

}  // namespace fovea::media
