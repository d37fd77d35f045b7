#pragma once

#include <cstdint>

namespace fovea::cpu {

inline constexpr int kAmxRows = 16;   // of a tile, at most
inline constexpr int kAmxBytes = 64;  // of a row of a tile: what one step multiplies of a row of x

/// The 64 bytes that LDTILECFG reads.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t bytes[16] = {};  ///< of a row, by tile
  std::uint8_t rows[16] = {};
};

}  // namespace fovea::cpu
