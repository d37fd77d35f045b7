#pragma once

// The micro-kernel of ARM's matrix instructions, which add the product of 2 rows of x, 8 bytes
// each, and 2 columns of weights to 2 x 2 sums: up to 12 rows of x times a panel, 8 columns at a
// time. Written once for all types of numbers as a template over the instruction, so that the tests
// run the same loop over an emulator of it. Include only from the unit of an instruction set;
// Instruction is a type of an unnamed namespace:
//   Vector                   has load_int and prefetch; its Int is four integers of 32 bits
//   Sum, Sums                32 bits, and four of them: [2 rows][2 columns]
//   zero()
//   multiply(sums, x, w)     sums + x w; x is [2 rows][8 bytes], w [2 columns][8 bytes]
//   store_row<row>(p, sums)  the two columns of a row
// Source: Arm Architecture Reference Manual for A-profile, BFMMLA and USMMLA.

#include "ops/cpu/gemm/micro_kernel.h"

namespace fovea::cpu {

template <class Instruction>
struct MatrixTiles {
  using Sum = typename Instruction::Sum;
  static constexpr int kRows = 12;  // 24 vectors of sums, four of weights, one of x

  /// sums[r][0..32) = x[r] * panel[..][0..32), and what follows to an even number of rows. Takes
  /// rows of the panel by twos; what lies behind the last is zero. Nothing happens beside it.
  template <class Beside>
  static void multiply(const TileOperands& in, Sum* sums, const Beside&) {
    switch ((in.rows + 1) / 2) {
      case 1: return multiply_pairs<1>(in, sums);
      case 2: return multiply_pairs<2>(in, sums);
      case 3: return multiply_pairs<3>(in, sums);
      case 4: return multiply_pairs<4>(in, sums);
      case 5: return multiply_pairs<5>(in, sums);
      default: return multiply_pairs<6>(in, sums);
    }
  }

 private:
  using V = typename Instruction::Vector;
  using Int = typename V::Int;
  using Sums = typename Instruction::Sums;
  static constexpr int kColumns = 8;  // at a time
  static constexpr int kColumnPairs = kColumns / 2;

  /// 8 bytes of two rows.
  static Int load_two(const std::byte* first, const std::byte* second) {
    Int both;
    __builtin_memcpy(&both, first, 8);
    __builtin_memcpy(reinterpret_cast<std::byte*>(&both) + 8, second, 8);
    return both;
  }

  /// Columns `column` to `column` + 7 of two rows of the panel, two columns to a vector.
  static void load_weights(const std::byte* row, Int (&w)[kColumnPairs]) {
    for (int half = 0; half < 2; ++half) {
      const Int upper = V::load_int(row + half * 4 * kGroupBytes);
      const Int lower = V::load_int(row + kPanelRowBytes + half * 4 * kGroupBytes);
      w[2 * half] = __builtin_shufflevector(upper, lower, 0, 4, 1, 5);
      w[2 * half + 1] = __builtin_shufflevector(upper, lower, 2, 6, 3, 7);
    }
  }

  template <int kPairs>
  static void multiply_pairs(const TileOperands& in, Sum* sums) {
    const std::int64_t stride = in.x.stride;
    // Of an odd number of rows the last one is taken twice.
    const std::int64_t last = in.rows - 1;
    for (int column = 0; column < kPanelColumns; column += kColumns) {
      Sums sum[kPairs][kColumnPairs];
      for (int p = 0; p < kPairs; ++p) {
        for (int c = 0; c < kColumnPairs; ++c) sum[p][c] = Instruction::zero();
      }
      const std::byte* next = in.upcoming.data;
      const std::byte* row = in.panel + column * kGroupBytes;
      const std::byte* x = in.x.values;
      for (std::int64_t k = 0; k < in.depth; k += 2) {
        for (int line = 0; line < 4; ++line) V::prefetch(next + line * kLineBytes);
        next += 2 * in.upcoming.step;
        Int w[kColumnPairs];
        load_weights(row, w);
#pragma GCC unroll 8
        for (int p = 0; p < kPairs; ++p) {
          const std::byte* const first = x + 2 * p * stride;
          const Int both = load_two(first, 2 * p + 1 > last ? first : first + stride);
#pragma GCC unroll 8
          for (int c = 0; c < kColumnPairs; ++c)
            sum[p][c] = Instruction::multiply(sum[p][c], both, w[c]);
        }
        row += 2 * kPanelRowBytes;
        x += 2 * kGroupBytes;
      }
      for (int p = 0; p < kPairs; ++p) {
        Sum* const to = sums + 2 * p * kPanelColumns + column;
        for (int c = 0; c < kColumnPairs; ++c) {
          Instruction::template store_row<0>(to + 2 * c, sum[p][c]);
          Instruction::template store_row<1>(to + kPanelColumns + 2 * c, sum[p][c]);
        }
      }
    }
  }
};

}  // namespace fovea::cpu
