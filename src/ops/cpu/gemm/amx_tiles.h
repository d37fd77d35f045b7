#pragma once

// The micro-kernel of AMX: up to 32 rows of x times a panel of 32 columns, in four tiles of sums.
// Written once for all types of numbers as a template over the instructions, so that the tests run
// the same loop over an emulator of them. Include only from the unit of an instruction set;
// Instructions is a type of an unnamed namespace, as in ops/cpu/simd/amx.h:
//   Sum                            32 bits: float or std::int32_t
//   configure(shapes)              as LDTILECFG
//   release()                      as TILERELEASE
//   clear<tile>()                  as TILEZERO
//   load<tile>(p, stride)          as TILELOADD
//   load_once<tile>(p, stride)     as TILELOADDT1, which leaves L1 to what is needed again
//   store<tile>(p, stride)         as TILESTORED
//   multiply<sum, x, weights>()    adds the products of two tiles to a third
//   prefetch(p)                    into L2
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2.

#include "ops/cpu/gemm/micro_kernel.h"
#include "ops/cpu/simd/amx.h"

namespace fovea::cpu {

/// Micro-kernels in the tiles of AMX, which keep their shapes from call to call, because setting
/// them takes as long as eight products, and are free again when the task ends.
template <class Instructions>
struct AmxTiles {
  using Sum = typename Instructions::Sum;
  static_assert(sizeof(Sum) == kGroupBytes && kStepRows == kAmxRows);
  static constexpr int kRows = 2 * kAmxRows;

  AmxTiles() = default;
  AmxTiles(const AmxTiles&) = delete;
  AmxTiles& operator=(const AmxTiles&) = delete;
  ~AmxTiles() { Instructions::release(); }

  /// sums[r][0..32) = x[r] * panel[..][0..32), in whole steps of the panel. Calls beside() once a
  /// step: it multiplies for some 64 cycles, in which vectors can do what else there is to do.
  template <class Beside>
  void multiply(const TileOperands& in, Sum* sums, const Beside& beside) {
    static constexpr ShapesByRows kShapes = shapes_by_rows();
    if (in.rows != shaped_for_) Instructions::configure(kShapes.shapes[in.rows]);
    shaped_for_ = in.rows;
    if (in.rows > kAmxRows) {
      multiply_rows<true>(in, sums, beside);
    } else {
      multiply_rows<false>(in, sums, beside);
    }
  }

 private:
  /// Four tiles of sums, two of x and two of weights.
  enum Tile : int {
    kUpperLeft,
    kUpperRight,
    kLowerLeft,
    kLowerRight,
    kUpper,
    kLower,
    kLeft,
    kRight,
    kNumTiles
  };

  struct ShapesByRows {
    TileShapes shapes[kRows + 1];
  };

  static constexpr TileShapes shapes_for(int rows) {
    const int upper = rows < kAmxRows ? rows : kAmxRows;
    const int lower = rows - upper;
    const int rows_of[kNumTiles] = {upper, upper, lower, lower, upper, lower, kAmxRows, kAmxRows};
    TileShapes shapes;
    for (int tile = 0; tile < kNumTiles; ++tile) {
      shapes.rows[tile] = static_cast<std::uint8_t>(rows_of[tile]);
      shapes.bytes[tile] = rows_of[tile] == 0 ? 0 : kAmxBytes;
    }
    return shapes;
  }

  static constexpr ShapesByRows shapes_by_rows() {
    ShapesByRows all;
    for (int rows = 0; rows <= kRows; ++rows) all.shapes[rows] = shapes_for(rows);
    return all;
  }

  template <bool kHasLower, class Beside>
  static void multiply_rows(const TileOperands& in, Sum* sums, const Beside& beside) {
    Instructions::template clear<kUpperLeft>();
    Instructions::template clear<kUpperRight>();
    if constexpr (kHasLower) {
      Instructions::template clear<kLowerLeft>();
      Instructions::template clear<kLowerRight>();
    }
    const std::int64_t stride = in.x.stride;
    const std::byte* upper = in.x.values;
    const std::byte* lower = upper + kAmxRows * stride;
    const std::byte* panel = in.panel;
    const std::byte* next = in.upcoming.data;
    const std::int64_t next_bytes = kStepRows * in.upcoming.step;
    for (std::int64_t row = 0; row < in.depth; row += kStepRows) {
      for (std::int64_t line = 0; line < next_bytes; line += kLineBytes)
        Instructions::prefetch(next + line);
      next += next_bytes;
      Instructions::template load<kLeft>(panel, kPanelRowBytes);
      Instructions::template load<kRight>(panel + kPanelRowBytes / 2, kPanelRowBytes);
      Instructions::template load_once<kUpper>(upper, stride);
      Instructions::template multiply<kUpperLeft, kUpper, kLeft>();
      Instructions::template multiply<kUpperRight, kUpper, kRight>();
      if constexpr (kHasLower) {
        Instructions::template load_once<kLower>(lower, stride);
        Instructions::template multiply<kLowerLeft, kLower, kLeft>();
        Instructions::template multiply<kLowerRight, kLower, kRight>();
      }
      beside();
      panel += kAmxRows * kPanelRowBytes;
      upper += kAmxBytes;
      lower += kAmxBytes;
    }
    constexpr std::int64_t kSumBytes = kPanelColumns * sizeof(Sum);
    Instructions::template store<kUpperLeft>(sums, kSumBytes);
    Instructions::template store<kUpperRight>(sums + kHalfPanel, kSumBytes);
    if constexpr (kHasLower) {
      Sum* const lower_sums = sums + kAmxRows * kPanelColumns;
      Instructions::template store<kLowerLeft>(lower_sums, kSumBytes);
      Instructions::template store<kLowerRight>(lower_sums + kHalfPanel, kSumBytes);
    }
  }

  std::int64_t shaped_for_ = 0;  // rows
};

}  // namespace fovea::cpu
