// The EXIF block is a TIFF file:
//   0  2  "II" little endian | "MM" big endian
//   2  2  42
//   4  4  offset of the first directory, from the start of the block
// A directory is a count (2 bytes) and entries of 12 bytes: tag 2, type 2, count 4, value 4.
// A value of type SHORT lies in the first two bytes of the value field.
#include "media/exif.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

namespace fovea::media {
namespace {

constexpr std::size_t kEntryBytes = 12;
constexpr std::uint32_t kOrientationTag = 0x0112;
constexpr std::uint32_t kTypeShort = 3;

/// Unsigned numbers of either byte order; bytes outside the block read as 0.
class TiffReader {
 public:
  TiffReader(std::span<const std::uint8_t> bytes, bool big_endian)
      : bytes_(bytes), big_endian_(big_endian) {}

  [[nodiscard]] std::uint32_t u16(std::size_t offset) const noexcept { return read(offset, 2); }
  [[nodiscard]] std::uint32_t u32(std::size_t offset) const noexcept { return read(offset, 4); }

 private:
  [[nodiscard]] std::uint32_t read(std::size_t offset, std::size_t count) const noexcept {
    if (offset > bytes_.size() || bytes_.size() - offset < count) return 0;
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < count; ++i)
      value = (value << 8) | bytes_[offset + (big_endian_ ? i : count - 1 - i)];
    return value;
  }

  std::span<const std::uint8_t> bytes_;
  bool big_endian_;
};

bool starts_with(std::span<const std::uint8_t> bytes, std::span<const std::uint8_t> prefix) {
  return bytes.size() >= prefix.size() && std::equal(prefix.begin(), prefix.end(), bytes.begin());
}

}  // namespace

Orientation exif_orientation(std::span<const std::uint8_t> exif) noexcept {
  constexpr std::array<std::uint8_t, 6> kExifPrefix = {'E', 'x', 'i', 'f', 0, 0};
  constexpr std::array<std::uint8_t, 4> kLittle = {'I', 'I', 42, 0};
  constexpr std::array<std::uint8_t, 4> kBig = {'M', 'M', 0, 42};
  if (starts_with(exif, kExifPrefix)) exif = exif.subspan(kExifPrefix.size());
  const bool big_endian = starts_with(exif, kBig);
  if (!big_endian && !starts_with(exif, kLittle)) return Orientation::kUpright;

  const TiffReader tiff(exif, big_endian);
  const std::size_t directory = tiff.u32(4);
  const std::size_t num_entries = tiff.u16(directory);
  for (std::size_t i = 0; i < num_entries; ++i) {
    const std::size_t entry = directory + 2 + i * kEntryBytes;
    if (tiff.u16(entry) != kOrientationTag) continue;
    const std::uint32_t value = tiff.u16(entry + 8);
    const bool valid = tiff.u16(entry + 2) == kTypeShort && value >= 1 && value <= 8;
    return valid ? static_cast<Orientation>(value) : Orientation::kUpright;
  }
  return Orientation::kUpright;
}

Image apply_orientation(Image image, Orientation orientation) {
  if (orientation == Orientation::kUpright) return image;
  const auto code = static_cast<int>(orientation);
  const bool swaps_axes = code >= 5;
  const bool from_right = code == 2 || code == 3 || code == 7 || code == 8;   // source x runs back
  const bool from_bottom = code == 3 || code == 4 || code == 6 || code == 7;  // source y runs back

  constexpr std::ptrdiff_t kChannels = 3;
  const std::ptrdiff_t row_bytes = image.width_px * kChannels;
  const std::ptrdiff_t along_x = from_right ? -kChannels : kChannels;
  const std::ptrdiff_t along_y = from_bottom ? -row_bytes : row_bytes;
  const std::ptrdiff_t per_column = swaps_axes ? along_y : along_x;  // of the upright image
  const std::ptrdiff_t per_row = swaps_axes ? along_x : along_y;
  const std::uint8_t* const origin = image.rgb.data() + (from_right ? row_bytes - kChannels : 0) +
                                     (from_bottom ? (image.height_px - 1) * row_bytes : 0);

  Image upright{.width_px = swaps_axes ? image.height_px : image.width_px,
                .height_px = swaps_axes ? image.width_px : image.height_px,
                .rgb = std::vector<std::uint8_t>(image.rgb.size())};
  std::uint8_t* out = upright.rgb.data();
  for (std::int64_t y = 0; y < upright.height_px; ++y)
    for (std::int64_t x = 0; x < upright.width_px; ++x)
      out = std::copy_n(origin + y * per_row + x * per_column, kChannels, out);
  return upright;
}

}  // namespace fovea::media
