// Random numbers for workloads, and images of them.
//
// PNG without compression is big-endian throughout but for the block lengths:
//
//   89 'P' 'N' 'G' 0d 0a 1a 0a
//   chunk = length u32, type [4], data [length], CRC-32 of type and data u32
//   IHDR: width u32, height u32, 8 bits, colour type 2 (RGB), 0, 0, 0
//   IDAT: a piece of the zlib stream; here each holds one block
//   IEND: nothing
//
//   zlib stream = 78 01, blocks, Adler-32 of the data u32
//   stored block = 01 if last else 00, length u16 little-endian, its complement, data [length]
//
// The data are the rows, each behind a byte 0: no filter.
#include "bench/synthetic.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <string_view>

namespace fovea::cli {
namespace {

using Bytes = std::vector<std::uint8_t>;

void append_u32(Bytes& out, std::uint32_t value) {
  for (const unsigned shift : {24U, 16U, 8U, 0U}) {
    out.push_back(static_cast<std::uint8_t>(value >> shift));
  }
}

constexpr std::array<std::uint32_t, 256> make_crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1U) ^ ((value & 1U) != 0 ? 0xedb88320U : 0);
    table[byte] = value;
  }
  return table;
}

std::uint32_t crc32(std::span<const std::uint8_t> bytes) {
  static constexpr std::array<std::uint32_t, 256> kTable = make_crc_table();
  std::uint32_t crc = 0xffffffffU;
  for (const std::uint8_t byte : bytes) crc = kTable[(crc ^ byte) & 0xffU] ^ (crc >> 8U);
  return ~crc;
}

std::uint32_t adler32(std::span<const std::uint8_t> bytes) {
  constexpr std::uint32_t kModulus = 65521;
  constexpr std::size_t kUnreduced = 5552;  // most bytes before the sums could overflow
  std::uint32_t a = 1;
  std::uint32_t b = 0;
  while (!bytes.empty()) {
    const auto run = bytes.first(std::min(bytes.size(), kUnreduced));
    for (const std::uint8_t byte : run) {
      a += byte;
      b += a;
    }
    a %= kModulus;
    b %= kModulus;
    bytes = bytes.subspan(run.size());
  }
  return (b << 16U) | a;
}

void append_chunk(Bytes& out, std::string_view type, std::span<const std::uint8_t> data) {
  append_u32(out, static_cast<std::uint32_t>(data.size()));
  const std::size_t checked = out.size();
  out.insert(out.end(), type.begin(), type.end());
  out.insert(out.end(), data.begin(), data.end());
  append_u32(out, crc32(std::span(out).subspan(checked)));
}

Bytes unfiltered_rows(std::span<const std::uint8_t> rgb, std::size_t row_bytes) {
  Bytes rows;
  rows.reserve(rgb.size() + rgb.size() / row_bytes);
  for (; !rgb.empty(); rgb = rgb.subspan(row_bytes)) {
    rows.push_back(0);
    rows.insert(rows.end(), rgb.begin(), rgb.begin() + static_cast<std::ptrdiff_t>(row_bytes));
  }
  return rows;
}

void append_image_data(Bytes& out, std::span<const std::uint8_t> data) {
  constexpr std::size_t kMaxBlock = 65535;
  const std::uint32_t checksum = adler32(data);
  Bytes piece{0x78, 0x01};
  while (!data.empty()) {
    const auto block = data.first(std::min(data.size(), kMaxBlock));
    data = data.subspan(block.size());
    const auto length = static_cast<std::uint16_t>(block.size());
    const auto low = static_cast<std::uint8_t>(length);
    const auto high = static_cast<std::uint8_t>(length >> 8U);
    const auto inverted = [](std::uint8_t byte) { return static_cast<std::uint8_t>(byte ^ 0xffU); };
    piece.insert(piece.end(), {static_cast<std::uint8_t>(data.empty()), low, high, inverted(low),
                               inverted(high)});
    piece.insert(piece.end(), block.begin(), block.end());
    if (data.empty()) append_u32(piece, checksum);
    append_chunk(out, "IDAT", piece);
    piece.clear();
  }
}

}  // namespace

std::uint64_t Random::next() noexcept {
  state_ += 0x9e3779b97f4a7c15U;  // 2^64 divided by the golden ratio
  std::uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30U)) * 0xbf58476d1ce4e5b9U;
  mixed = (mixed ^ (mixed >> 27U)) * 0x94d049bb133111ebU;
  return mixed ^ (mixed >> 31U);
}

double Random::uniform() noexcept { return static_cast<double>(next() >> 11U) * 0x1p-53; }

std::int64_t Random::between(std::int64_t min, std::int64_t max) noexcept {
  const std::uint64_t count = static_cast<std::uint64_t>(max - min) + 1;
  // Draws above the last multiple of `count` would favour the small remainders.
  const std::uint64_t usable = std::numeric_limits<std::uint64_t>::max() / count * count;
  std::uint64_t drawn = next();
  while (drawn >= usable) drawn = next();
  return min + static_cast<std::int64_t>(drawn % count);
}

void Random::fill(std::span<std::uint8_t> bytes) noexcept {
  while (!bytes.empty()) {
    std::uint64_t bits = next();
    const std::size_t count = std::min<std::size_t>(bytes.size(), sizeof(bits));
    for (std::uint8_t& byte : bytes.first(count)) {
      byte = static_cast<std::uint8_t>(bits);
      bits >>= 8U;
    }
    bytes = bytes.subspan(count);
  }
}

std::vector<std::uint8_t> encode_png(std::span<const std::uint8_t> rgb, std::int64_t width_px,
                                     std::int64_t height_px) {
  Bytes header;
  append_u32(header, static_cast<std::uint32_t>(width_px));
  append_u32(header, static_cast<std::uint32_t>(height_px));
  header.insert(header.end(), {8, 2, 0, 0, 0});

  Bytes png{0x89, 'P', 'N', 'G', '\r', '\n', 0x1a, '\n'};
  png.reserve(rgb.size() + rgb.size() / 1024 + 256);
  append_chunk(png, "IHDR", header);
  append_image_data(png, unfiltered_rows(rgb, static_cast<std::size_t>(width_px) * 3));
  append_chunk(png, "IEND", {});
  return png;
}

}  // namespace fovea::cli
