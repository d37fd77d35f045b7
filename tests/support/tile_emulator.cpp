#include "support/tile_emulator.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/check.h"
#include "core/float_mode.h"

namespace fovea::test {
namespace {

constexpr int kNumTiles = 8;
constexpr int kElements = cpu::kAmxBytes / 4;  // of 32 bits, in a row

struct Tile {
  int rows = 0;
  int bytes = 0;  ///< of a row
  std::byte data[cpu::kAmxRows][cpu::kAmxBytes] = {};

  template <class Number>
  [[nodiscard]] Number at(int row, int index) const {
    Number number;
    std::memcpy(&number, &data[row][static_cast<std::size_t>(index) * sizeof(Number)],
                sizeof(number));
    return number;
  }
};

thread_local Tile tiles[kNumTiles];  // NOLINT: state of a processor

Tile& configured(int tile) {
  FOVEA_CHECK(tiles[tile].rows > 0, kInternal, "#UD: tile ", tile, " has no shape");
  return tiles[tile];
}

/// What a product of tiles reads and writes.
struct Operands {
  Tile& sum;
  const Tile& x;
  const Tile& weights;
};

Operands operands(int sum, int x, int weights) {
  const Operands all{configured(sum), configured(x), configured(weights)};
  FOVEA_CHECK(sum != x && sum != weights && x != weights, kInternal, "#UD: a tile comes twice");
  FOVEA_CHECK(all.sum.rows == all.x.rows && all.sum.bytes == all.weights.bytes &&
                  all.x.bytes == 4 * all.weights.rows,
              kInternal, "#UD: tiles ", sum, ", ", x, ", ", weights, " do not fit");
  return all;
}

/// @return element `index` of a row of bf16 numbers.
float bf16_at(const Tile& tile, int row, int index) {
  const std::uint32_t bits = std::uint32_t{tile.at<std::uint16_t>(row, index)} << 16;
  float number = 0;
  std::memcpy(&number, &bits, sizeof(number));
  return number;
}

}  // namespace

void EmulatedTiles::configure(const cpu::TileShapes& shapes) {
  FOVEA_CHECK(shapes.palette == 1 && shapes.start_row == 0, kInternal, "#GP: palette");
  FOVEA_CHECK(std::ranges::all_of(shapes.reserved, [](auto byte) { return byte == 0; }), kInternal,
              "#GP: reserved bytes");
  for (int tile = 0; tile < 16; ++tile) {
    const int rows = shapes.rows[tile];
    const int bytes = shapes.bytes[tile];
    const bool exists = tile < kNumTiles;
    FOVEA_CHECK(rows <= (exists ? cpu::kAmxRows : 0) && bytes <= (exists ? cpu::kAmxBytes : 0) &&
                    (rows == 0) == (bytes == 0) && bytes % 4 == 0,
                kInternal, "#GP: tile ", tile, " of ", rows, " rows of ", bytes, " bytes");
    if (!exists) continue;
    tiles[tile] = {};
    tiles[tile].rows = rows;
    tiles[tile].bytes = bytes;
  }
}

void EmulatedTiles::release() { std::ranges::fill(tiles, Tile{}); }

void EmulatedTiles::clear(int tile) {
  Tile& to = configured(tile);
  const Tile shape = to;
  to = {};
  to.rows = shape.rows;
  to.bytes = shape.bytes;
}

bool EmulatedTiles::are_free() {
  return std::ranges::all_of(tiles, [](const Tile& tile) { return tile.rows == 0; });
}

void EmulatedTiles::load(int tile, const void* p, std::int64_t stride) {
  Tile& to = configured(tile);
  for (int row = 0; row < to.rows; ++row) {
    std::memcpy(to.data[row], static_cast<const std::byte*>(p) + row * stride,
                static_cast<std::size_t>(to.bytes));
  }
}

void EmulatedTiles::store(int tile, void* p, std::int64_t stride) {
  const Tile& from = configured(tile);
  for (int row = 0; row < from.rows; ++row) {
    std::memcpy(static_cast<std::byte*>(p) + row * stride, from.data[row],
                static_cast<std::size_t>(from.bytes));
  }
}

void EmulatedBf16::multiply(int sum, int x, int weights) {
  const auto [to, left, right] = operands(sum, x, weights);
  const FloatModeScope mode(kTowerFloatMode);
  for (int row = 0; row < to.rows; ++row) {
    float even[kElements] = {};
    float odd[kElements] = {};
    for (int pair = 0; pair < right.rows; ++pair) {
      for (int n = 0; n < to.bytes / 4; ++n) {
        even[n] = std::fma(bf16_at(left, row, 2 * pair), bf16_at(right, pair, 2 * n), even[n]);
        odd[n] =
            std::fma(bf16_at(left, row, 2 * pair + 1), bf16_at(right, pair, 2 * n + 1), odd[n]);
      }
    }
    for (int n = 0; n < to.bytes / 4; ++n) {
      const float result = to.at<float>(row, n) + (even[n] + odd[n]);
      std::memcpy(&to.data[row][4 * n], &result, sizeof(result));
    }
  }
}

void EmulatedInt8::multiply(int sum, Factor x, Factor y) {
  const auto [to, left, right] = operands(sum, x.tile, y.tile);
  const auto number = [](const Tile& tile, bool is_signed, int row, int index) -> std::int32_t {
    const auto byte = tile.at<std::uint8_t>(row, index);
    return is_signed ? static_cast<std::int8_t>(byte) : byte;
  };
  for (int row = 0; row < to.rows; ++row) {
    for (int n = 0; n < to.bytes / 4; ++n) {
      auto result = to.at<std::uint32_t>(row, n);
      for (int k = 0; k < left.bytes; ++k) {
        result += static_cast<std::uint32_t>(number(left, x.is_signed, row, k) *
                                             number(right, y.is_signed, k / 4, 4 * n + k % 4));
      }
      std::memcpy(&to.data[row][4 * n], &result, sizeof(result));
    }
  }
}

}  // namespace fovea::test
