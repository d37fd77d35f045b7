// A chunk is: length 4 (big endian, of the payload), type 4, payload, CRC 4 (of type and payload).
//   eXIf: a TIFF block
//   tRNS: one alpha per palette entry | 2 bytes, a grey level | 6 bytes, a colour
//   tEXt: keyword, 0, text
//   zTXt: keyword, 0, method 0, deflated text
//   iTXt: keyword, 0, deflated 0|1, method 0, language, 0, translated keyword, 0, text
// Older programs store EXIF as a text "Raw profile type exif": line feed, "exif", line feed, number
// of bytes, line feed, hex digits in lines. Of chunks of one kind the last counts, as in Pillow.
#include "media/formats/png_metadata.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <vector>

#include "core/check.h"
#include "media/bytes.h"

namespace fovea::media {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::size_t kMaxTextBytes = std::size_t{1} << 20;  // inflated; Pillow's limits
constexpr std::size_t kMaxBytesOfTexts = std::size_t{64} << 20;
constexpr std::size_t kLeastCountedBytes = std::size_t{16} << 10;  // beginning takes time, too

struct Chunk {
  std::string_view type;
  Bytes payload;
  Bytes typed_payload;  ///< type and payload, which the checksum covers
  std::uint32_t crc;
};

/// Calls `visit` with every chunk up to the end chunk or the first one that leaves the file.
template <class Visit>
void for_each_chunk(Bytes file, const Visit& visit) {
  Bytes rest = file.subspan(std::min(file.size(), kPngSignatureBytes));
  while (rest.size() >= kPngChunkFrameBytes) {
    const std::size_t size = big_endian_u32(rest);
    if (size > rest.size() - kPngChunkFrameBytes) return;
    const Chunk chunk{text_of(rest.subspan(4, 4)), rest.subspan(8, size), rest.subspan(4, size + 4),
                      big_endian_u32(rest.subspan(8 + size))};
    if (chunk.type == "IEND") return;
    visit(chunk);
    rest = rest.subspan(kPngChunkFrameBytes + size);
  }
}

/// Takes what stands before the next 0 from the front of `rest`; all of it if there is none.
Bytes take_string(Bytes& rest) {
  const auto zero = std::find(rest.begin(), rest.end(), std::uint8_t{0});
  const auto length = static_cast<std::size_t>(zero - rest.begin());
  const Bytes string = rest.first(length);
  rest = rest.subspan(std::min(length + 1, rest.size()));
  return string;
}

/// Inflates the texts of one file.
class TextInflater {
 public:
  explicit TextInflater(std::string_view name) : name_(name) {}

  /// Empty if the text is damaged or longer than kMaxTextBytes.
  /// @throws Error(kInvalidArgument) if the texts so far are longer than kMaxBytesOfTexts.
  [[nodiscard]] std::vector<std::uint8_t> inflate(Bytes deflated) {
    buffer_.resize(kMaxTextBytes);
    uLongf size = buffer_.size();
    const int done = uncompress(buffer_.data(), &size, deflated.data(), deflated.size());
    inflated_bytes_ += std::max<std::size_t>(size, kLeastCountedBytes);
    FOVEA_CHECK(inflated_bytes_ <= kMaxBytesOfTexts, kInvalidArgument, name_,
                ": expected metadata of at most ", kMaxBytesOfTexts, " bytes after inflating");
    if (done != Z_OK) return {};
    return {buffer_.data(), buffer_.data() + size};
  }

 private:
  std::string_view name_;
  std::vector<std::uint8_t> buffer_;
  std::size_t inflated_bytes_ = 0;
};

/// The text of a chunk if it is one with this keyword, otherwise empty.
std::vector<std::uint8_t> text_with_keyword(const Chunk& chunk, std::string_view keyword,
                                            TextInflater& inflater) {
  const bool deflated = chunk.type == "zTXt";
  const bool international = chunk.type == "iTXt";
  if (!deflated && !international && chunk.type != "tEXt") return {};
  Bytes rest = chunk.payload;
  if (text_of(take_string(rest)) != keyword) return {};
  if (deflated && rest.empty()) return {};
  if (deflated) return inflater.inflate(rest.subspan(1));
  if (!international) return {rest.begin(), rest.end()};
  if (rest.size() < 2) return {};
  const bool is_deflated = rest[0] != 0;
  rest = rest.subspan(2);
  (void)take_string(rest);  // language
  (void)take_string(rest);  // translated keyword
  if (is_deflated) return inflater.inflate(rest);
  return {rest.begin(), rest.end()};
}

/// 16 for anything but a hex digit.
int hex_value(std::uint8_t digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  const int lower = digit | 0x20;
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : 16;
}

/// The bytes of a raw profile; one byte, which is no EXIF, if they are damaged.
std::vector<std::uint8_t> raw_profile_bytes(Bytes text) {
  for (int line = 0; line < 3; ++line) {
    const auto end = std::find(text.begin(), text.end(), std::uint8_t{'\n'});
    if (end == text.end()) return {};
    text = text.subspan(static_cast<std::size_t>(end - text.begin()) + 1);
  }
  std::vector<std::uint8_t> digits;
  std::copy_if(text.begin(), text.end(), std::back_inserter(digits),
               [](std::uint8_t c) { return c != ' ' && (c < '\t' || c > '\r'); });
  std::vector<std::uint8_t> damaged(1);
  if (digits.size() % 2 != 0) return damaged;
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2) {
    const int high = hex_value(digits[i]);
    const int low = hex_value(digits[i + 1]);
    if (high > 15 || low > 15) return damaged;
    bytes.push_back(static_cast<std::uint8_t>(high * 16 + low));
  }
  return bytes;
}

}  // namespace

Orientation read_png_orientation(Bytes file, std::string_view name) {
  TextInflater inflater(name);
  Bytes exif;
  std::vector<std::uint8_t> raw_profile;
  std::vector<std::uint8_t> xmp;
  for_each_chunk(file, [&](const Chunk& chunk) {
    if (chunk.type == "eXIf") exif = chunk.payload;
    if (auto text = text_with_keyword(chunk, "Raw profile type exif", inflater); !text.empty())
      raw_profile = std::move(text);
    if (auto text = text_with_keyword(chunk, "XML:com.adobe.xmp", inflater); !text.empty())
      xmp = std::move(text);
  });
  if (!exif.empty()) return read_orientation(exif, xmp);
  return read_orientation(raw_profile_bytes(raw_profile), xmp);
}

std::optional<Bytes> read_png_transparency(Bytes file, std::string_view name) {
  std::optional<Bytes> found;
  for_each_chunk(file, [&](const Chunk& chunk) {
    if (chunk.type != "tRNS") return;
    const uLong crc = crc32_z(0, chunk.typed_payload.data(), chunk.typed_payload.size());
    FOVEA_CHECK(crc == chunk.crc, kCorruptData, name, ": the tRNS chunk has a wrong checksum");
    found = chunk.payload;
  });
  return found;
}

}  // namespace fovea::media
