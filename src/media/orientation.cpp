// The EXIF block is a TIFF file:
//   0  2  "II" little endian | "MM" big endian
//   2  2  42
//   4  4  offset of the first directory, from the start of the block
// A directory is a count (2 bytes) and entries of 12 bytes: tag 2, type 2, count 4, value 4. A
// value of more than 4 bytes lies at the offset that stands in its place. What is read of a damaged
// block is what Pillow reads of it: entries up to the first one that leaves the block.
#include "media/orientation.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "media/bytes.h"

namespace fovea::media {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::size_t kHeaderBytes = 8;
constexpr std::size_t kEntryBytes = 12;
constexpr std::size_t kInlineBytes = 4;
constexpr std::uint64_t kOrientationTag = 0x0112;

/// Types of TIFF values.
enum Type : std::uint8_t {
  kByte = 1,
  kAscii,
  kShort,
  kLong,
  kRational,
  kSignedByte,
  kUndefined,
  kSignedShort,
  kSignedLong,
  kSignedRational,
  kFloat,
  kDouble,
  kIfd,
  kLong8 = 16
};

/// 0 for types that do not exist.
std::size_t bytes_of(std::uint64_t type) {
  switch (type) {
    case kByte:
    case kAscii:
    case kSignedByte:
    case kUndefined: return 1;
    case kShort:
    case kSignedShort: return 2;
    case kLong:
    case kSignedLong:
    case kFloat:
    case kIfd: return 4;
    case kRational:
    case kSignedRational:
    case kDouble:
    case kLong8: return 8;
    default: return 0;
  }
}

/// Unsigned numbers of either byte order.
class TiffReader {
 public:
  /// Nothing if the block does not begin as TIFF does. Pillow also takes swapped 42s.
  static std::optional<TiffReader> open(Bytes block) {
    if (block.size() < kHeaderBytes) return std::nullopt;
    const std::string_view magic = text_of(block.first(4));
    const bool big_endian = magic == "MM\0*"sv || magic == "MM*\0"sv || magic == "MM\0+"sv;
    if (!big_endian && magic != "II*\0"sv && magic != "II\0*"sv) return std::nullopt;
    return TiffReader(block, big_endian);
  }

  [[nodiscard]] std::uint64_t size() const noexcept { return bytes_.size(); }
  [[nodiscard]] bool holds(std::uint64_t offset, std::uint64_t count) const noexcept {
    return offset <= bytes_.size() && bytes_.size() - offset >= count;
  }
  /// A number of `count` bytes that the block holds.
  [[nodiscard]] std::uint64_t read(std::uint64_t offset, std::size_t count) const noexcept {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < count; ++i)
      value = (value << 8) | bytes_[offset + (big_endian_ ? i : count - 1 - i)];
    return value;
  }

 private:
  TiffReader(Bytes bytes, bool big_endian) : bytes_(bytes), big_endian_(big_endian) {}

  Bytes bytes_;
  bool big_endian_;
};

/// The first number of a value, right from 1 to 8; 0 for values that are no numbers.
double number_at(const TiffReader& tiff, std::uint64_t type, std::uint64_t offset) {
  switch (type) {
    case kByte:
    case kAscii:
    case kUndefined: return 0;
    case kFloat: return std::bit_cast<float>(static_cast<std::uint32_t>(tiff.read(offset, 4)));
    case kDouble: return std::bit_cast<double>(tiff.read(offset, 8));
    case kRational:
    case kSignedRational:
      return static_cast<double>(tiff.read(offset, 4)) /
             static_cast<double>(tiff.read(offset + 4, 4));
    default: return static_cast<double>(tiff.read(offset, bytes_of(type)));
  }
}

Orientation to_orientation(double number) {
  const auto code = number >= 1 && number <= 8 ? static_cast<std::uint8_t>(number) : 1;
  return code == number ? static_cast<Orientation>(code) : Orientation::kUpright;
}

/// Nothing if the directory has no entry for the orientation.
std::optional<Orientation> find_entry(const TiffReader& tiff) {
  const std::uint64_t directory = tiff.read(4, 4);
  if (!tiff.holds(directory, 2)) return std::nullopt;
  const std::uint64_t end = directory + 2 + tiff.read(directory, 2) * kEntryBytes;
  std::uint64_t far_bytes = 0;  // of values so far that do not fit into their entries
  for (std::uint64_t entry = directory + 2; entry < end; entry += kEntryBytes) {
    if (!tiff.holds(entry, kEntryBytes)) break;
    const std::uint64_t type = tiff.read(entry + 2, 2);
    const std::uint64_t value_bytes = tiff.read(entry + 4, 4) * bytes_of(type);
    if (value_bytes == 0) continue;
    std::uint64_t offset = entry + 8;
    if (value_bytes > kInlineBytes) {
      far_bytes += value_bytes;
      if (far_bytes > tiff.size()) continue;  // the values overlap, or the count is wrong
      offset = tiff.read(offset, 4);
      if (!tiff.holds(offset, value_bytes)) break;
    }
    if (tiff.read(entry, 2) == kOrientationTag)
      return to_orientation(number_at(tiff, type, offset));
  }
  return std::nullopt;
}

/// Nothing if the block is empty or has no entry for the orientation; upright if it is no TIFF.
std::optional<Orientation> exif_orientation(Bytes exif) {
  constexpr std::string_view kPrefix = "Exif\0\0"sv;
  for (int i = 0; i < 2 && text_of(exif).starts_with(kPrefix); ++i)
    exif = exif.subspan(kPrefix.size());
  if (exif.empty()) return std::nullopt;
  const std::optional<TiffReader> tiff = TiffReader::open(exif);
  return tiff ? find_entry(*tiff) : Orientation::kUpright;
}

/// tiff:Orientation="6" or <tiff:Orientation>6</tiff:Orientation>; upright if there is neither.
Orientation xmp_orientation(std::string_view xmp) {
  constexpr std::string_view kName = "tiff:Orientation";
  for (std::size_t at = xmp.find(kName); at != xmp.npos; at = xmp.find(kName, at + 1)) {
    std::string_view rest = xmp.substr(at + kName.size());
    const std::size_t between = rest.starts_with("=\"") ? 2
                                : rest.starts_with('>') ? 1
                                                        : rest.size();
    rest.remove_prefix(between);
    if (!rest.empty() && rest[0] >= '0' && rest[0] <= '9') return to_orientation(rest[0] - '0');
  }
  return Orientation::kUpright;
}

}  // namespace

Orientation read_orientation(Bytes exif, Bytes xmp) noexcept {
  const std::optional<Orientation> orientation = exif_orientation(exif);
  return orientation ? *orientation : xmp_orientation(text_of(xmp));
}

bool has_exif_orientation(Bytes exif) noexcept { return exif_orientation(exif).has_value(); }

Margins turned(const Margins& stored, Orientation orientation) noexcept {
  Margins margins = stored;
  if (reverses_x(orientation)) std::swap(margins.left_px, margins.right_px);
  if (reverses_y(orientation)) std::swap(margins.top_px, margins.bottom_px);
  if (!swaps_sides(orientation)) return margins;
  return {margins.top_px, margins.left_px, margins.bottom_px, margins.right_px};
}

}  // namespace fovea::media
