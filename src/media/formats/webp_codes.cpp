// As much of a lossless WebP decoder as it takes to know what the real one will need. Names follow
// RFC 9649: an entropy-coded image is one group of five prefix codes and its pixels.
#include "media/formats/webp_codes.h"

#include <algorithm>
#include <array>
#include <bitset>
#include <vector>

#include "core/interrupt.h"

namespace fovea::media {
namespace {

struct Damaged {};

void check(bool holds) {
  if (!holds) throw Damaged();
}

/// Bits of a stream, first bit lowest.
class BitReader {
 public:
  explicit BitReader(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  [[nodiscard]] std::uint32_t read(int count) {
    std::uint32_t value = 0;
    for (int i = 0; i < count; ++i) value |= bit() << i;
    return value;
  }
  [[nodiscard]] std::uint32_t bit() {
    check(position_ / 8 < bytes_.size());
    const std::uint32_t value = bytes_[position_ / 8] >> (position_ % 8) & 1u;
    ++position_;
    return value;
  }

 private:
  std::span<const std::uint8_t> bytes_;
  std::size_t position_ = 0;  // bits
};

/// A canonical prefix code: symbols in the order of their codes, and how many have each length.
class PrefixCode {
 public:
  explicit PrefixCode(std::span<const std::uint8_t> lengths) {
    for (const std::uint8_t length : lengths) ++counts_[length];
    counts_[0] = 0;
    std::array<std::size_t, kMaxLength + 2> next{};
    for (std::size_t i = 1; i <= kMaxLength; ++i) next[i + 1] = next[i] + counts_[i];
    symbols_.resize(next[kMaxLength + 1]);
    for (std::size_t symbol = 0; symbol < lengths.size(); ++symbol) {
      if (lengths[symbol] > 0) symbols_[next[lengths[symbol]]++] = static_cast<int>(symbol);
    }
    check_complete();
  }

  [[nodiscard]] int read(BitReader& bits) const {
    if (symbols_.size() == 1) return symbols_.front();  // without a bit
    std::size_t code = 0;
    std::size_t first = 0;
    std::size_t index = 0;
    for (std::size_t length = 1; length <= kMaxLength; ++length) {
      code |= bits.bit();
      if (code < first + counts_[length]) return symbols_[index + code - first];
      index += counts_[length];
      first = (first + counts_[length]) << 1;
      code <<= 1;
    }
    throw Damaged();
  }

 private:
  static constexpr std::size_t kMaxLength = 15;

  /// Every sequence of bits begins with exactly one code.
  void check_complete() const {
    if (symbols_.size() == 1) return;
    std::size_t left = 1;
    for (std::size_t length = 1; length <= kMaxLength; ++length) {
      left *= 2;
      check(counts_[length] <= left);
      left -= counts_[length];
    }
    check(left == 0);
  }

  std::array<std::size_t, kMaxLength + 1> counts_{};
  std::vector<int> symbols_;
};

/// Lengths of one or two symbols that are named.
void read_simple_lengths(BitReader& bits, std::span<std::uint8_t> lengths) {
  const bool has_two = bits.bit() != 0;
  const std::uint32_t first = bits.read(bits.bit() != 0 ? 8 : 1);
  const std::uint32_t second = has_two ? bits.read(8) : first;
  check(std::max(first, second) < lengths.size());
  lengths[first] = lengths[second] = 1;
}

/// Lengths that are coded themselves: 16 repeats the last that is not 0, 17 and 18 zeros.
void read_coded_lengths(BitReader& bits, std::span<std::uint8_t> lengths) {
  constexpr std::array kOrder{17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  std::array<std::uint8_t, kOrder.size()> lengths_of_lengths{};
  const std::size_t count = bits.read(4) + 4;
  check(count <= kOrder.size());
  for (std::size_t i = 0; i < count; ++i) {
    lengths_of_lengths[static_cast<std::size_t>(kOrder[i])] =
        static_cast<std::uint8_t>(bits.read(3));
  }
  const PrefixCode code(lengths_of_lengths);
  std::size_t left = lengths.size();  // codes to read
  if (bits.bit() != 0) {
    const int size = 2 + 2 * static_cast<int>(bits.read(3));
    left = 2 + bits.read(size);
    check(left <= lengths.size());
  }
  std::uint8_t last = 8;
  for (std::size_t symbol = 0; symbol < lengths.size() && left > 0; --left) {
    const int value = code.read(bits);
    if (value < 16) {
      lengths[symbol++] = static_cast<std::uint8_t>(value);
      if (value != 0) last = static_cast<std::uint8_t>(value);
      continue;
    }
    const std::size_t repeat = value == 16   ? 3 + bits.read(2)
                               : value == 17 ? 3 + bits.read(3)
                                             : 11 + bits.read(7);
    check(repeat <= lengths.size() - symbol);
    std::ranges::fill(lengths.subspan(symbol, repeat), value == 16 ? last : std::uint8_t{0});
    symbol += repeat;
  }
}

PrefixCode read_code(BitReader& bits, std::size_t alphabet) {
  std::vector<std::uint8_t> lengths(alphabet);
  if (bits.bit() != 0) {
    read_simple_lengths(bits, lengths);
  } else {
    read_coded_lengths(bits, lengths);
  }
  return PrefixCode(lengths);
}

/// Colours that were used last, by a hash.
class ColorCache {
 public:
  explicit ColorCache(int bits) : bits_(bits), colors_(bits == 0 ? 0 : std::size_t{1} << bits) {}
  [[nodiscard]] std::size_t size() const noexcept { return colors_.size(); }
  [[nodiscard]] std::uint32_t operator[](std::size_t key) const { return colors_[key]; }
  void add(std::uint32_t argb) {
    if (bits_ > 0) colors_[(0x1e35a7bdu * argb) >> (32 - bits_)] = argb;
  }

 private:
  int bits_;
  std::vector<std::uint32_t> colors_;
};

ColorCache read_color_cache(BitReader& bits) {
  if (bits.bit() == 0) return ColorCache(0);
  const int size = static_cast<int>(bits.read(4));
  check(size >= 1 && size <= 11);
  return ColorCache(size);
}

/// A length or a distance: a prefix and further bits.
std::size_t read_number(BitReader& bits, int prefix) {
  if (prefix < 4) return static_cast<std::size_t>(prefix) + 1;
  const int extra = (prefix - 2) >> 1;
  return ((std::size_t{2} + (prefix & 1)) << extra) + bits.read(extra) + 1;
}

/// Neighbours by distance, the nearest first; pairs of (x to the left, y above).
struct Neighbour {
  std::int8_t x;
  std::int8_t y;
};
constexpr std::array<Neighbour, 120> kNeighbours{
    {{0, 1},  {1, 0},  {1, 1},  {-1, 1}, {0, 2},  {2, 0},  {1, 2},  {-1, 2}, {2, 1},  {-2, 1},
     {2, 2},  {-2, 2}, {0, 3},  {3, 0},  {1, 3},  {-1, 3}, {3, 1},  {-3, 1}, {2, 3},  {-2, 3},
     {3, 2},  {-3, 2}, {0, 4},  {4, 0},  {1, 4},  {-1, 4}, {4, 1},  {-4, 1}, {3, 3},  {-3, 3},
     {2, 4},  {-2, 4}, {4, 2},  {-4, 2}, {0, 5},  {3, 4},  {-3, 4}, {4, 3},  {-4, 3}, {5, 0},
     {1, 5},  {-1, 5}, {5, 1},  {-5, 1}, {2, 5},  {-2, 5}, {5, 2},  {-5, 2}, {4, 4},  {-4, 4},
     {3, 5},  {-3, 5}, {5, 3},  {-5, 3}, {0, 6},  {6, 0},  {1, 6},  {-1, 6}, {6, 1},  {-6, 1},
     {2, 6},  {-2, 6}, {6, 2},  {-6, 2}, {4, 5},  {-4, 5}, {5, 4},  {-5, 4}, {3, 6},  {-3, 6},
     {6, 3},  {-6, 3}, {0, 7},  {7, 0},  {1, 7},  {-1, 7}, {5, 5},  {-5, 5}, {7, 1},  {-7, 1},
     {4, 6},  {-4, 6}, {6, 4},  {-6, 4}, {2, 7},  {-2, 7}, {7, 2},  {-7, 2}, {3, 7},  {-3, 7},
     {7, 3},  {-7, 3}, {5, 6},  {-5, 6}, {6, 5},  {-6, 5}, {8, 0},  {4, 7},  {-4, 7}, {7, 4},
     {-7, 4}, {8, 1},  {8, 2},  {6, 6},  {-6, 6}, {8, 3},  {5, 7},  {-5, 7}, {7, 5},  {-7, 5},
     {8, 4},  {6, 7},  {-6, 7}, {7, 6},  {-7, 6}, {8, 5},  {7, 7},  {-7, 7}, {8, 6},  {8, 7}}};

std::size_t distance_of(std::size_t code, std::size_t width) {
  if (code > kNeighbours.size()) return code - kNeighbours.size();
  const Neighbour& at = kNeighbours[code - 1];
  const std::int64_t distance = at.y * static_cast<std::int64_t>(width) + at.x;
  return static_cast<std::size_t>(std::max<std::int64_t>(distance, 1));
}

/// Pixels of an image that has one group of codes, row by row.
std::vector<std::uint32_t> read_image(BitReader& bits, std::size_t width, std::size_t height) {
  constexpr std::size_t kLiterals = 256;
  constexpr std::size_t kLengths = 24;
  ColorCache cache = read_color_cache(bits);
  const PrefixCode green = read_code(bits, kLiterals + kLengths + cache.size());
  const PrefixCode red = read_code(bits, kLiterals);
  const PrefixCode blue = read_code(bits, kLiterals);
  const PrefixCode alpha = read_code(bits, kLiterals);
  const PrefixCode distance = read_code(bits, 40);
  std::vector<std::uint32_t> pixels;
  const std::size_t count = width * height;
  pixels.reserve(count);
  const auto add = [&](std::uint32_t argb) {
    if (pixels.size() % 65536 == 0) check_interrupt();
    pixels.push_back(argb);
    cache.add(argb);
  };
  while (pixels.size() < count) {
    const auto symbol = static_cast<std::size_t>(green.read(bits));
    if (symbol < kLiterals) {
      const auto r = static_cast<std::uint32_t>(red.read(bits));
      const auto b = static_cast<std::uint32_t>(blue.read(bits));
      const auto a = static_cast<std::uint32_t>(alpha.read(bits));
      add(a << 24 | r << 16 | static_cast<std::uint32_t>(symbol) << 8 | b);
    } else if (symbol < kLiterals + kLengths) {
      const std::size_t length = read_number(bits, static_cast<int>(symbol - kLiterals));
      const std::size_t back = distance_of(read_number(bits, distance.read(bits)), width);
      check(back <= pixels.size() && length <= count - pixels.size());
      for (std::size_t i = 0; i < length; ++i) add(pixels[pixels.size() - back]);
    } else {
      add(cache[symbol - kLiterals - kLengths]);
    }
  }
  return pixels;
}

/// Reads an image of one pixel per block of the image whose size is given.
std::vector<std::uint32_t> read_block_image(BitReader& bits, std::size_t width,
                                            std::size_t height) {
  const std::uint32_t shift = bits.read(3) + 2;
  const std::size_t side = std::size_t{1} << shift;
  return read_image(bits, (width + side - 1) >> shift, (height + side - 1) >> shift);
}

/// Reads a transform. @return the width of the image behind it.
std::size_t read_transform(BitReader& bits, std::uint32_t kind, std::size_t width,
                           std::size_t height) {
  enum Kind : std::uint8_t { kPredictor, kCrossColor, kSubtractGreen, kColorIndexing };
  switch (kind) {
    case kPredictor:
    case kCrossColor: (void)read_block_image(bits, width, height); return width;
    case kSubtractGreen: return width;
    default: break;
  }
  const std::size_t num_colors = bits.read(8) + 1;
  (void)read_image(bits, num_colors, 1);
  const int shift = num_colors <= 2 ? 3 : num_colors <= 4 ? 2 : num_colors <= 16 ? 1 : 0;
  return (width + (std::size_t{1} << shift) - 1) >> shift;
}

/// The bytes that libwebp keeps of a group: 5 tables, and an entry for each short code of all
/// channels.
std::size_t group_bytes(const ColorCache& cache) {
  constexpr std::size_t kEntryBytes = 4;
  constexpr std::size_t kGroupBytes = 1 << 10;
  return kGroupBytes + (2976 + 2 * cache.size()) * kEntryBytes;
}

std::size_t read_code_bytes(BitReader& bits, std::size_t width, std::size_t height) {
  constexpr std::size_t kKept = 1000;  // groups up to this number are kept, used or not
  std::bitset<4> seen;                 // transforms, each at most once
  while (bits.bit() != 0) {
    const std::uint32_t kind = bits.read(2);
    check(!seen[kind]);
    seen.set(kind);
    width = read_transform(bits, kind, width, height);
  }
  const ColorCache cache = read_color_cache(bits);
  if (bits.bit() == 0) return group_bytes(cache);
  std::bitset<65536> used;
  std::size_t highest = 0;
  for (const std::uint32_t pixel : read_block_image(bits, width, height)) {
    const std::size_t group = pixel >> 8 & 0xffff;
    used.set(group);
    highest = std::max(highest, group);
  }
  return std::max(used.count(), std::min(highest + 1, kKept)) * group_bytes(cache);
}

}  // namespace

std::size_t webp_code_bytes(std::span<const std::uint8_t> stream, std::int64_t width_px,
                            std::int64_t height_px) {
  constexpr std::int64_t kMostPixels = std::int64_t{1} << 28;  // 16384 x 16384: WebP's limit
  if (width_px > kMostPixels / height_px) return 0;
  BitReader bits(stream);
  try {
    return read_code_bytes(bits, static_cast<std::size_t>(width_px),
                           static_cast<std::size_t>(height_px));
  } catch (const Damaged&) {
    return 0;
  }
}

}  // namespace fovea::media
