// The int8 linear layer for AMX: register tiles of 32 rows x 32 columns in four accumulators, 16384
// products in one instruction. All else is done in vectors of 512 bits.
#include <immintrin.h>

#include "ops/cpu/int8/int8_avx512.h"
// The body is made of templates over a type of this file.
#include "ops/cpu/int8/body.h"

namespace fovea::cpu {

namespace {

constexpr int kAmxRows = 16;  // of a tile, at most; every row has 64 bytes
constexpr int kAmxBytes = 64;

/// The 64 bytes that LDTILECFG reads. Source: Intel 64 and IA-32 Architectures Software Developer's
/// Manual, volume 2, LDTILECFG.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t bytes[16] = {};  ///< of a row, by tile
  std::uint8_t rows[16] = {};
};

/// Tiles 0 to 3 are the sums: [upper left, upper right, lower left, lower right]. 4 and 5 are the
/// upper and the lower rows of x, 6 and 7 the left and the right weights.
constexpr TileShapes shapes_for(int rows) {
  const int upper = rows < kAmxRows ? rows : kAmxRows;
  const int rows_of[8] = {upper, upper,        rows - upper, rows - upper,
                          upper, rows - upper, kAmxRows,     kAmxRows};
  TileShapes shapes;
  for (int tile = 0; tile < 8; ++tile) {
    shapes.rows[tile] = static_cast<std::uint8_t>(rows_of[tile]);
    shapes.bytes[tile] = rows_of[tile] == 0 ? 0 : kAmxBytes;
  }
  return shapes;
}

template <int... kRows>
constexpr auto all_shapes(std::integer_sequence<int, kRows...>) {
  return std::array<TileShapes, sizeof...(kRows)>{shapes_for(kRows)...};
}

/// Micro-kernels in the tiles of AMX, which are free again when the task ends.
struct AmxTiles {
  static constexpr int kRows = 2 * kAmxRows;

  AmxTiles() = default;
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;
  ~AmxTiles() { _tile_release(); }

  /// As multiply_int8_tile, for 1..kRows rows.
  static void multiply(const Int8Rows& x, std::int64_t rows, const Int8Weights& weights,
                       Int8Upcoming upcoming, std::int32_t* sums) {
    static constexpr auto kShapes = all_shapes(std::make_integer_sequence<int, kRows + 1>{});
    _tile_loadconfig(&kShapes[static_cast<std::size_t>(rows)]);  // all tiles are zero now
    if (rows > kAmxRows) {
      multiply_rows<true>(x, weights, upcoming, sums);
    } else {
      multiply_rows<false>(x, weights, upcoming, sums);
    }
  }

 private:
  template <bool kHasLower>
  static void multiply_rows(const Int8Rows& x, const Int8Weights& weights, Int8Upcoming upcoming,
                            std::int32_t* sums) {
    const std::uint8_t* upper = x.values;
    const std::uint8_t* lower = x.values + kAmxRows * x.stride;
    const std::byte* panel = weights.panels;
    for (std::int64_t group = 0; group < weights.groups; group += kStepGroups) {
      const std::byte* const next = upcoming.data + group * upcoming.step;
      for (std::int64_t line = 0; line < kStepGroups * upcoming.step; line += kCacheLine)
        Int8Avx512::prefetch(next + line);
      _tile_loadd(6, panel, kGroupBytes);
      _tile_loadd(7, panel + kGroupBytes / 2, kGroupBytes);
      _tile_loadd(4, upper, x.stride);
      _tile_dpbusd(0, 4, 6);
      _tile_dpbusd(1, 4, 7);
      if constexpr (kHasLower) {
        _tile_loadd(5, lower, x.stride);
        _tile_dpbusd(2, 5, 6);
        _tile_dpbusd(3, 5, 7);
      }
      panel += kStepGroups * kGroupBytes;
      upper += kStepK;
      lower += kStepK;
    }
    constexpr std::int64_t kSumBytes = kPanelColumns * sizeof(std::int32_t);
    _tile_stored(0, sums, kSumBytes);
    _tile_stored(1, sums + kHalfPanel, kSumBytes);
    if constexpr (kHasLower) {
      std::int32_t* const lower_sums = sums + kAmxRows * kPanelColumns;
      _tile_stored(2, lower_sums, kSumBytes);
      _tile_stored(3, lower_sums + kHalfPanel, kSumBytes);
    }
  }
};

/// 8 tiles of 32 rows share what is fetched of the weights: with fewer, memory is the limit. With
/// 4096 features they take 1 MB of the L2 of the thread, which has 2 MB where there is AMX.
constexpr std::int64_t kAmxTaskRows = 256;

}  // namespace

constinit const Int8Leaf kInt8Amx{&quantize_rows<Int8Avx512>, &multiply_int8<Int8Avx512, AmxTiles>,
                                  AmxTiles::kRows, kAmxTaskRows, "amx"};

}  // namespace fovea::cpu
