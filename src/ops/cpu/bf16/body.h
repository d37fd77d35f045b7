#pragma once

// The bf16 linear layer of one task, written once for all instruction sets. Include only from a
// leaf, which defines a vector type V in an anonymous namespace, as with ops/cpu/linear/body.h.
//
// Besides the members of the vector types of ops/cpu/vector, V has pairs of bf16 numbers:
//   Pairs, load_pairs(p)  the weights of kWidth columns, two values each
//          broadcast_pair(p)  two values of a row, for every column
//          dot(sum, x, w)     fma(x[0], w[0], fma(x[1], w[1], sum))
//   store_bf16(p, a)      kWidth numbers, rounded to nearest even, denormal ones as zero
// The leaf also names its micro-kernels: Bf16VectorTiles<V>, or a type with the same members, whose
// V needs no pairs. All leaves of Bf16VectorTiles give the same bits: see bf16_linear.h. A compiler
// must not contract operations of its own accord.

#include <array>
#include <utility>

#include "ops/cpu/bf16/task.h"
#include "ops/cpu/linear/body.h"
#include "ops/cpu/panel_loop.h"

namespace fovea::cpu {

static_assert(kPairBytes == kPanelRowBytes);

/// The leaf's first half.
template <class V>
void round_rows(const RoundTask& task) {
  for (std::int64_t r = 0; r < task.rows; ++r) {
    const float* const x = task.x + r * task.cols;
    std::byte* const to = task.out.values + r * task.out.stride;
    std::int64_t c = 0;
    for (; c + V::kWidth <= task.cols; c += V::kWidth) V::store_bf16(to + 2 * c, V::load(x + c));
    if (c < task.cols) {
      V::store_bf16(to + 2 * c, V::load_some(x + c, task.cols - c));
      c += V::kWidth;
    }
    for (; c % kStepValues != 0; c += V::kWidth) V::store_bf16(to + 2 * c, V::broadcast(0.0f));
  }
}

/// sums[r][0..32) = sum_k rows[r][k] * panel[k][0..32), for kRows rows: the micro-kernel. Holds two
/// vectors of every row at a time, one in each half of the panel.
template <class V, int kRows>
void multiply_bf16_tile(const Bf16Rows& rows, const std::byte* panel, std::int64_t pairs,
                        Upcoming upcoming, float* sums) {
  for (int column = 0; column < kHalfPanel; column += V::kWidth) {
    typename V::Reg left[kRows];
    typename V::Reg right[kRows];
    for (int r = 0; r < kRows; ++r) left[r] = right[r] = V::broadcast(0.0f);
    const std::byte* weights = panel + column * kPairK * 2;
    const std::byte* x = rows.values;
    const std::byte* next = upcoming.data;
    for (std::int64_t pair = 0; pair < pairs; ++pair) {
      V::prefetch(next);
      V::prefetch(next + kLineBytes);
      next += upcoming.step;
      const typename V::Int w_left = V::load_int(weights);
      const typename V::Int w_right = V::load_int(weights + kPairBytes / 2);
      for (int r = 0; r < kRows; ++r) {
        const typename V::Int both = V::broadcast_int(x + r * rows.stride);
        left[r] = V::dot_bf16(left[r], both, w_left);
        right[r] = V::dot_bf16(right[r], both, w_right);
      }
      weights += kPairBytes;
      x += kPairK * 2;
    }
    for (int r = 0; r < kRows; ++r) {
      V::store(sums + r * kPanelColumns + column, left[r]);
      V::store(sums + r * kPanelColumns + column + kHalfPanel, right[r]);
    }
  }
}

using MultiplyBf16Tile = void (*)(const Bf16Rows&, const std::byte*, std::int64_t, Upcoming,
                                  float*);

/// Micro-kernels for 1..V::kTileRows rows; entry 0 is never used.
template <class V, int... kRows>
constexpr auto multiply_bf16_tiles(std::integer_sequence<int, kRows...>) {
  return std::array<MultiplyBf16Tile, sizeof...(kRows) + 1>{nullptr,
                                                            &multiply_bf16_tile<V, kRows + 1>...};
}

/// Micro-kernels in vectors. Lives as long as a task.
template <class V>
struct Bf16VectorTiles {
  static constexpr int kRows = V::kTileRows;

  /// As multiply_bf16_tile, for 1..kRows rows. Nothing happens beside it.
  template <class Beside>
  static void multiply(const Bf16Rows& x, std::int64_t rows, const std::byte* panel,
                       std::int64_t pairs, Upcoming upcoming, float* sums, const Beside&) {
    static constexpr auto kTiles = multiply_bf16_tiles<V>(std::make_integer_sequence<int, kRows>{});
    kTiles[static_cast<std::size_t>(rows)](x, panel, pairs, upcoming, sums);
  }
};

/// What multiply_panels does for a bf16 layer. Lives as long as a task.
template <class V, ops::Activation kActivation, class Tiles>
struct Bf16Work {
  using Vector = V;
  using Sum = float;
  static constexpr int kRows = Tiles::kRows;

  const Bf16Task& task;
  Tiles tiles = {};

  [[nodiscard]] std::int64_t num_rows() const { return task.rows; }
  [[nodiscard]] std::int64_t num_panels() const { return task.num_panels; }
  [[nodiscard]] std::int64_t panel_rows() const { return task.pairs; }
  [[nodiscard]] std::int64_t beside_calls() const {
    return (task.pairs + kStepPairs - 1) / kStepPairs;
  }
  [[nodiscard]] const std::byte* panel(std::int64_t column) const {
    return task.panels + column / kPanelColumns * task.panel_bytes;
  }

  template <class Beside>
  void multiply(const PanelTile& tile, Upcoming upcoming, Sum* sums, const Beside& beside) {
    const Bf16Rows rows{task.x.values + tile.row * task.x.stride, task.x.stride};
    tiles.multiply(rows, tile.rows, panel(tile.column), panel_rows(), upcoming, sums, beside);
  }

  /// out = residual + activation(sum + bias) for a tile.
  void finish(const PanelTile& tile, const Sum* sums) const {
    const std::int64_t rest = task.columns - tile.column;
    const std::int64_t columns = rest < kPanelColumns ? rest : kPanelColumns;
    for (std::int64_t r = 0; r < tile.rows; ++r) {
      const std::int64_t row = tile.row + r;
      const float* const residual = task.residual == nullptr
                                        ? nullptr
                                        : task.residual + row * task.residual_stride + tile.column;
      float* const out = task.out + row * task.out_stride + tile.column;
      for (std::int64_t c = 0; c < columns; c += V::kWidth) {
        finish_vector<V, kActivation>(sums + r * kPanelColumns + c, task.bias + tile.column + c,
                                      residual == nullptr ? nullptr : residual + c, out + c,
                                      columns - c);
      }
    }
  }
};

/// The leaf's second half: one task from rounded rows to finished output.
template <class V, class Tiles>
void multiply_bf16(const Bf16Task& task) {
  with_constant(task.activation, [&]<ops::Activation kActivation>() {
    Bf16Work<V, kActivation, Tiles> work{task};
    multiply_panels(work);
  });
}

}  // namespace fovea::cpu
