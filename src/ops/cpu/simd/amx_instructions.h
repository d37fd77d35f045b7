#pragma once

// The instructions of AMX but for the products, which depend on the type of the numbers. Include
// only from a unit; see gemm/amx_tiles.h for what the members mean. Assembly, because the
// intrinsics of g++ 12 take the number of a tile as a token, not as an argument of a template.

#include <cstdint>

#include "ops/cpu/simd/tile_shapes.h"

namespace fovea::cpu {
namespace {

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
