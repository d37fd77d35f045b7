#pragma once

// The micro-kernel in vectors, written once for all formats and instruction sets. Include only from
// the unit of an instruction set: all are templates over its vector type V.

#include <array>
#include <utility>

#include "ops/cpu/gemm/task.h"

namespace fovea::cpu {

/// Memory that will be needed next, prefetched step by step during the current work.
struct Upcoming {
  const std::byte* data;  ///< any address may be prefetched
  std::int64_t step;      ///< bytes to move on per row of a panel, at most two cache lines
};

// The numbers of a format:
//   kHasBlocks            whether k is cut into blocks, whose sums are added up
//   Sum, Sums             one sum, and those of a vector of columns
//   Factors               the weights of a vector of columns, kGroupBytes each
//   broadcast(p)          kGroupBytes of a row of x, for every column
//   multiply_add(s, x, w) s + x . w over the group

template <class V>
struct F32Numbers {
  static constexpr bool kHasBlocks = true;
  using Vector = V;
  using Sum = float;
  using Sums = typename V::Reg;
  using Factors = typename V::Reg;

  static Sums zero() { return V::broadcast(0.0f); }
  static Sums load_sums(const Sum* p) { return V::load(p); }
  static void store_sums(Sum* p, Sums a) { V::store(p, a); }
  static Factors load(const std::byte* p) { return V::load(reinterpret_cast<const float*>(p)); }
  static Factors broadcast(const std::byte* p) {
    return V::broadcast(*reinterpret_cast<const float*>(p));
  }
  static Sums multiply_add(Sums sum, Factors x, Factors w) { return V::fma(x, w, sum); }
};

template <class V>
struct Bf16Numbers {
  static constexpr bool kHasBlocks = false;
  using Vector = V;
  using Sum = float;
  using Sums = typename V::Reg;
  using Factors = typename V::Int;

  static Sums zero() { return V::broadcast(0.0f); }
  static Sums load_sums(const Sum* p) { return V::load(p); }
  static void store_sums(Sum* p, Sums a) { V::store(p, a); }
  static Factors load(const std::byte* p) { return V::load_int(p); }
  static Factors broadcast(const std::byte* p) { return V::broadcast_int(p); }
  static Sums multiply_add(Sums sum, Factors x, Factors w) { return V::dot_bf16(sum, x, w); }
};

template <class V>
struct Int8Numbers {
  static constexpr bool kHasBlocks = false;
  using Vector = V;
  using Sum = std::int32_t;
  using Sums = typename V::Int;
  using Factors = typename V::Int;

  static Sums zero() { return V::zero(); }
  static Sums load_sums(const Sum* p) { return V::load_int(p); }
  static void store_sums(Sum* p, Sums a) { V::store_int(p, a); }
  static Factors load(const std::byte* p) { return V::load_int(p); }
  static Factors broadcast(const std::byte* p) { return V::broadcast_int(p); }
  static Sums multiply_add(Sums sum, Factors x, Factors w) { return V::dot_int8(sum, x, w); }
};

/// Rows of x, `stride` bytes apart.
struct TileRows {
  const std::byte* values;
  std::int64_t stride;
};

/// Weights as the micro-kernel multiplies them, [depth][kPanelColumns] groups.
template <class Numbers>
struct PanelWeights {
  const std::byte* rows;

  void load(std::int64_t k, int column, typename Numbers::Factors& left,
            typename Numbers::Factors& right) const {
    const std::byte* const from = rows + k * kPanelRowBytes + column * kGroupBytes;
    left = Numbers::load(from);
    right = Numbers::load(from + kHalfPanel * kGroupBytes);
  }
};

/// sums[r][0..32) (+)= sum_k x[r][k] * weights[k][0..32), for kRows rows: the micro-kernel. Holds
/// two vectors of every row at a time, one in each half of the panel. (x by value makes g++ 12
/// compute the multiples of its stride ahead and spill them: 7 % of the time in int8 and bf16.)
template <class Numbers, int kRows, class Rows, class Weights>
void multiply_tile(const Rows& x, Weights weights, std::int64_t depth, bool add, Upcoming upcoming,
                   typename Numbers::Sum* sums) {
  using V = typename Numbers::Vector;
  using Factors = typename Numbers::Factors;
  const bool adds = Numbers::kHasBlocks && add;
  for (int column = 0; column < kHalfPanel; column += V::kWidth) {
    typename Numbers::Sums left[kRows];
    typename Numbers::Sums right[kRows];
    for (int r = 0; r < kRows; ++r) {
      const auto* const sum = sums + r * kPanelColumns + column;
      left[r] = adds ? Numbers::load_sums(sum) : Numbers::zero();
      right[r] = adds ? Numbers::load_sums(sum + kHalfPanel) : Numbers::zero();
    }
    const std::byte* next = upcoming.data;
    const std::byte* group = x.values;
    for (std::int64_t k = 0; k < depth; ++k) {
      V::prefetch(next);
      V::prefetch(next + kLineBytes);
      next += upcoming.step;
      Factors w_left;
      Factors w_right;
      weights.load(k, column, w_left, w_right);
      for (int r = 0; r < kRows; ++r) {
        const Factors both = Numbers::broadcast(group + r * x.stride);
        left[r] = Numbers::multiply_add(left[r], both, w_left);
        right[r] = Numbers::multiply_add(right[r], both, w_right);
      }
      group += kGroupBytes;
    }
    for (int r = 0; r < kRows; ++r) {
      auto* const sum = sums + r * kPanelColumns + column;
      Numbers::store_sums(sum, left[r]);
      Numbers::store_sums(sum + kHalfPanel, right[r]);
    }
  }
}

template <class Numbers, class Rows, class Weights>
using MultiplyTile = void (*)(const Rows&, Weights, std::int64_t, bool, Upcoming,
                              typename Numbers::Sum*);

/// Micro-kernels for 1..kTileRows rows; entry 0 is never used.
template <class Numbers, class Rows, class Weights, int... kRows>
constexpr auto multiply_tiles(std::integer_sequence<int, kRows...>) {
  return std::array<MultiplyTile<Numbers, Rows, Weights>, sizeof...(kRows) + 1>{
      nullptr, &multiply_tile<Numbers, kRows + 1, Rows, Weights>...};
}

/// The micro-kernel for a number of rows, 1..kTileRows.
template <class Numbers, int kTileRows, class Rows, class Weights>
MultiplyTile<Numbers, Rows, Weights> multiply_tile_of(std::int64_t rows) {
  static constexpr auto kTiles =
      multiply_tiles<Numbers, Rows, Weights>(std::make_integer_sequence<int, kTileRows>{});
  return kTiles[static_cast<std::size_t>(rows)];
}

/// The product in tiles of a whole panel.
struct TileOperands {
  TileRows x;
  std::int64_t rows;  ///< 1..kRows of the tiles
  const std::byte* panel;
  std::int64_t depth;
  Upcoming upcoming;
};

/// Register tiles in vectors. Lives as long as a task.
template <class Numbers, int kTileRows>
struct VectorTiles {
  using Sum = typename Numbers::Sum;
  static constexpr int kRows = kTileRows;

  /// sums[r][0..32) = x[r] * panel[..][0..32). Nothing happens beside it.
  template <class Beside>
  static void multiply(const TileOperands& in, Sum* sums, const Beside&) {
    using Weights = PanelWeights<Numbers>;
    multiply_tile_of<Numbers, kTileRows, TileRows, Weights>(in.rows)(
        in.x, Weights{in.panel}, in.depth, false, in.upcoming, sums);
  }
};

}  // namespace fovea::cpu
