#pragma once

#include <cstdint>

#include "ops/cpu/simd/amx.h"

namespace fovea::test {

/// What a processor with AMX does with its tiles, one set for each thread. Where the processor
/// would fault, it throws Error(kInternal). Source: Intel 64 and IA-32 Architectures Software
/// Developer's Manual, volume 2, LDTILECFG, TILERELEASE, TILEZERO, TILELOADD,
/// TILELOADDT1, TILESTORED.
struct EmulatedTiles {
  static void configure(const cpu::TileShapes& shapes);
  static void release();
  template <int kTile>
  static void clear() {
    clear(kTile);
  }
  /// Whether the tiles of this thread are as the operating system hands them out.
  [[nodiscard]] static bool are_free();

  template <int kTile>
  static void load(const void* p, std::int64_t stride) {
    load(kTile, p, stride);
  }
  template <int kTile>
  static void load_once(const void* p, std::int64_t stride) {
    load(kTile, p, stride);
  }
  template <int kTile>
  static void store(void* p, std::int64_t stride) {
    store(kTile, p, stride);
  }
  static void prefetch(const void*) {}  // any address, so nothing may be read

 private:
  static void clear(int tile);
  static void load(int tile, const void* p, std::int64_t stride);
  static void store(int tile, void* p, std::int64_t stride);
};

/// With TDPBF16PS: of every step, the sums over even and over odd k are two chains of fused
/// multiply-adds from zero; their sum is added to the tile. Denormal numbers are zero.
struct EmulatedBf16 : EmulatedTiles {
  using Sum = float;

  template <int kSum, int kX, int kWeights>
  static void multiply() {
    multiply(kSum, kX, kWeights);
  }

 private:
  static void multiply(int sum, int x, int weights);
};

/// With TDPBSSD, TDPBSUD, TDPBUSD and TDPBUUD, whose sums wrap around.
struct EmulatedInt8 : EmulatedTiles {
  using Sum = std::int32_t;

  template <int kSum, int kX, int kWeights>
  static void multiply() {
    multiply_us<kSum, kX, kWeights>();
  }
  template <int kSum, int kX, int kY>
  static void multiply_ss() {
    multiply(kSum, {kX, true}, {kY, true});
  }
  template <int kSum, int kX, int kY>
  static void multiply_su() {
    multiply(kSum, {kX, true}, {kY, false});
  }
  template <int kSum, int kX, int kY>
  static void multiply_us() {
    multiply(kSum, {kX, false}, {kY, true});
  }
  template <int kSum, int kX, int kY>
  static void multiply_uu() {
    multiply(kSum, {kX, false}, {kY, false});
  }

 private:
  struct Factor {
    int tile;
    bool is_signed;
  };
  static void multiply(int sum, Factor x, Factor y);
};

}  // namespace fovea::test
