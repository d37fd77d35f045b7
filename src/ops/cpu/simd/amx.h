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

namespace {

/// The instructions of AMX but for the products, which depend on the type of the numbers; see
/// gemm/amx_tiles.h for what the members mean. They are assembly, because the intrinsics of g++ 12
/// take the number of a tile as a token, not as an argument of a template.
struct AmxInstructions {
  static void configure(const TileShapes& shapes) { asm volatile("ldtilecfg %0" : : "m"(shapes)); }
  static void release() { asm volatile("tilerelease"); }
  template <int kTile>
  static void clear() {
    asm volatile("tilezero %%tmm%c0" : : "i"(kTile));
  }
  template <int kTile>
  static void load(const void* p, std::int64_t stride) {
    asm volatile("tileloadd (%0, %1), %%tmm%c2" : : "r"(p), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kTile>
  static void load_once(const void* p, std::int64_t stride) {
    asm volatile("tileloaddt1 (%0, %1), %%tmm%c2" : : "r"(p), "r"(stride), "i"(kTile) : "memory");
  }
  template <int kTile>
  static void store(void* p, std::int64_t stride) {
    asm volatile("tilestored %%tmm%c2, (%0, %1)" : : "r"(p), "r"(stride), "i"(kTile) : "memory");
  }
  static void prefetch(const void* p) {
    constexpr int kIntoL2 = 2;
    __builtin_prefetch(p, 0, kIntoL2);
  }
};

}  // namespace
}  // namespace fovea::cpu
