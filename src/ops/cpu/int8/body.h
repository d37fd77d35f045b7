#pragma once

// The int8 linear layer of one task, written once for all instruction sets. Include only from a
// leaf, which defines a vector type V in an anonymous namespace, as with ops/cpu/linear/body.h.
//
// Besides the members of the vector types of ops/cpu/vector, V has integers of 32 bits:
//   Int, load_group(p)         the weights of kWidth columns, kGroupK values each
//        broadcast_group(p)    kGroupK values of a row, for every column
//        dot(sum, x, w)        sum + x . w over the group, exact: unsigned x, signed w
//        dot_one(sum, e, w, i) sum + e times value i of every group of w
//        to_float, store_int, load_int
//        add_bytes(sum, p)     sum + kGroupK bytes from p on for every lane, added to any lanes
//   smallest(a), largest(a)    of the lanes
//   count_outside(a, low, high) how many elements are below low or above high
//   store_bytes(p, y)          kByteVectors vectors as bytes, rounded to nearest even, then brought
//                              into [0, 255]
// The leaf also names its micro-kernels: VectorTiles<V>, or a type with the same members.
// All leaves give the same bits: sums of integers are exact, and every operation on floats is the
// same one, with fma rounded once and powers of 2 below 2^-126 flushed to 0. A compiler must not
// contract operations of its own accord.

#include <array>
#include <utility>

#include "ops/cpu/int8/activation.h"
#include "ops/cpu/int8/task.h"
#include "ops/cpu/panel_loop.h"

namespace fovea::cpu {

static_assert(kGroupBytes == kPanelRowBytes);

/// Vectors of floats that become one vector of bytes.
inline constexpr int kByteVectors = 4;

/// The elements of a row from `from` on, of which `count` are left; 0 beyond.
template <class V>
typename V::Reg load_row(const float* from, std::int64_t count) {
  return count >= V::kWidth ? V::load(from) : V::load_some(from, count);
}

/// The range of a row's elements. A row with an infinity or NaN gets `poison` NaN.
struct RowRange {
  float low;   ///< at most 0
  float high;  ///< at least 0
  float poison;
};

template <class V>
RowRange range_of(const float* x, std::int64_t cols) {
  using Reg = typename V::Reg;
  const Reg zero = V::broadcast(0.0f);
  Reg low[2] = {zero, zero};
  Reg high[2] = {zero, zero};
  Reg poison[2] = {zero, zero};
  const auto add = [&](int i, Reg a) {
    low[i] = V::min(a, low[i]);
    high[i] = V::max(a, high[i]);
    poison[i] = V::add(poison[i], V::mul(a, zero));
  };
  std::int64_t c = 0;
  for (; c + 2 * V::kWidth <= cols; c += 2 * V::kWidth) {
    add(0, V::load(x + c));
    add(1, V::load(x + c + V::kWidth));
  }
  for (; c < cols; c += V::kWidth) add(0, load_row<V>(x + c, cols - c));
  return {V::smallest(V::min(low[0], low[1])), V::largest(V::max(high[0], high[1])),
          V::sum(V::add(poison[0], poison[1]))};
}

/// Whether at most kMaxWide elements lie outside of the range.
template <class V>
bool leaves_few(const RowRange& range, const float* x, std::int64_t cols) {
  const typename V::Reg low = V::broadcast(range.low);
  const typename V::Reg high = V::broadcast(range.high);
  int count = 0;
  for (std::int64_t c = 0; c < cols && count <= kMaxWide; c += V::kWidth)
    count += V::count_outside(load_row<V>(x + c, cols - c), low, high);
  return count <= kMaxWide;
}

/// Halves first the upper, then the lower end of the range as long as few numbers become wide.
template <class V>
RowRange without_wide(RowRange range, const float* x, std::int64_t cols) {
  if (cols < kFewestWideFeatures || cols > kMostWideFeatures) return range;
  for (float RowRange::*const end : {&RowRange::high, &RowRange::low}) {
    for (int halvings = 0; halvings < kMaxHalvings && range.*end != 0.0f; ++halvings) {
      RowRange half = range;
      half.*end *= 0.5f;
      if (!leaves_few<V>(half, x, cols)) break;
      range = half;
    }
  }
  return range;
}

/// Lists the wide numbers of a row, which has at most kMaxWide of them.
template <class V>
void list_wide(const float* x, std::int64_t cols, RowRange range, float per_step,
               WideNumbers& wide) {
  const typename V::Reg low = V::broadcast(range.low);
  const typename V::Reg high = V::broadcast(range.high);
  for (std::int64_t c = 0; c < cols; c += V::kWidth) {
    if (V::count_outside(load_row<V>(x + c, cols - c), low, high) == 0) continue;
    for (std::int64_t k = c; k < cols && k < c + V::kWidth; ++k) {
      if (!(x[k] < range.low || x[k] > range.high)) continue;
      const float steps = __builtin_nearbyintf((x[k] - range.low) * per_step);
      const float excess = x[k] < range.low ? steps : steps - 255.0f;
      wide.numbers[wide.count++] = {static_cast<std::int32_t>(k),
                                    static_cast<std::int32_t>(excess)};
    }
  }
}

/// The values of a row, and what is unspecified behind them.
template <class V>
void quantize_values(const float* x, std::int64_t cols, float low, float steps,
                     std::uint8_t* values) {
  using Reg = typename V::Reg;
  const Reg from = V::broadcast(low);
  const Reg per_step = V::broadcast(steps);
  Reg y[kByteVectors];
  std::int64_t c = 0;
  for (; c + kByteVectors * V::kWidth <= cols; c += kByteVectors * V::kWidth) {
    for (int i = 0; i < kByteVectors; ++i)
      y[i] = V::mul(V::sub(V::load(x + c + i * V::kWidth), from), per_step);
    V::store_bytes(values + c, y);
  }
  if (c == cols) return;
  for (Reg& part : y) {
    const std::int64_t left = cols - c;
    part = left > 0 ? V::mul(V::sub(load_row<V>(x + c, left), from), per_step) : from;
    c += V::kWidth;
  }
  V::store_bytes(values + c - kByteVectors * V::kWidth, y);
}

/// The sum of what a row became. A template, so that every leaf has its own.
template <class V>
float total_of(const Int8Rows& rows, std::int64_t r, std::int64_t cols) {
  const std::uint8_t* const values = rows.values + r * rows.stride;
  typename V::Int sums = V::zero();
  std::int64_t k = 0;
  for (; k + kGroupK * V::kWidth <= cols; k += kGroupK * V::kWidth)
    sums = V::add_bytes(sums, values + k);
  std::int32_t lanes[V::kWidth];
  V::store_int(lanes, sums);
  std::int32_t sum = 0;
  for (const std::int32_t lane : lanes) sum += lane;
  for (; k < cols; ++k) sum += values[k];
  const WideNumbers& wide = rows.wide[r];
  for (std::int32_t i = 0; i < wide.count; ++i) sum += wide.numbers[i].excess;
  const float steps = rows.scale[r] * static_cast<float>(sum);
  return steps + rows.offset[r] * static_cast<float>(cols);
}

/// The leaf's first half: 256 steps from the smallest element to the largest that is not wide.
template <class V>
void quantize_rows(const QuantizeTask& task) {
  constexpr float kSteps = 255.0f;
  constexpr float kSmallestRange = 1e-25f;  // below it a row counts as constant
  constexpr float kLargestRange = 1e38f;
  for (std::int64_t r = 0; r < task.rows; ++r) {
    const float* const x = task.x + r * task.cols;
    std::uint8_t* const values = task.out.values + r * task.out.stride;
    const RowRange whole = range_of<V>(x, task.cols);
    const bool may_have_wide = whole.poison == 0.0f && whole.high - whole.low > kSmallestRange &&
                               whole.high - whole.low <= kLargestRange;
    const RowRange range = may_have_wide ? without_wide<V>(whole, x, task.cols) : whole;
    const float width = range.high - range.low;
    const bool is_constant = width < kSmallestRange;
    task.out.scale[r] = (is_constant ? 0.0f : width / kSteps) + range.poison;
    task.out.offset[r] = range.low;
    const float steps = is_constant ? 0.0f : kSteps / width;
    task.out.wide[r].count = 0;
    if (range.low != whole.low || range.high != whole.high)
      list_wide<V>(x, task.cols, range, steps, task.out.wide[r]);
    quantize_values<V>(x, task.cols, range.low, steps, values);
    task.out.total[r] = total_of<V>(task.out, r, task.cols);
  }
}

/// sums[r][0..32) = sum_k rows[r][k] * panel[k][0..32), for kRows rows: the micro-kernel. Holds two
/// vectors of every row at a time, one in each half of the panel.
template <class V, int kRows>
void multiply_int8_tile(const std::uint8_t* rows, std::int64_t stride, const std::byte* panel,
                        std::int64_t groups, Upcoming upcoming, std::int32_t* sums) {
  using Int = typename V::Int;
  for (int column = 0; column < kHalfPanel; column += V::kWidth) {
    Int left[kRows];
    Int right[kRows];
    for (int r = 0; r < kRows; ++r) left[r] = right[r] = V::zero();
    const std::byte* weights = panel + column * kGroupK;
    const std::byte* next = upcoming.data;
    const std::uint8_t* x_step = rows;
    for (std::int64_t first = 0; first < groups; first += kStepGroups, x_step += kStepK) {
      for (std::int64_t line = 0; line < kStepGroups * upcoming.step; line += kLineBytes)
        V::prefetch(next + line);
      next += kStepGroups * upcoming.step;
      for (std::int64_t group = 0; group < kStepGroups; ++group, weights += kGroupBytes) {
        const Int w_left = V::load_int(weights);
        const Int w_right = V::load_int(weights + kHalfPanel * kGroupK);
        for (int r = 0; r < kRows; ++r) {
          const Int x = V::broadcast_int(x_step + r * stride + group * kGroupK);
          left[r] = V::dot_int8(left[r], x, w_left);
          right[r] = V::dot_int8(right[r], x, w_right);
        }
      }
    }
    for (int r = 0; r < kRows; ++r) {
      V::store_int(sums + r * kPanelColumns + column, left[r]);
      V::store_int(sums + r * kPanelColumns + column + kHalfPanel, right[r]);
    }
  }
}

using MultiplyInt8Tile = void (*)(const std::uint8_t*, std::int64_t, const std::byte*, std::int64_t,
                                  Upcoming, std::int32_t*);

/// Micro-kernels for 1..V::kTileRows rows; entry 0 is never used.
template <class V, int... kRows>
constexpr auto multiply_int8_tiles(std::integer_sequence<int, kRows...>) {
  return std::array<MultiplyInt8Tile, sizeof...(kRows) + 1>{nullptr,
                                                            &multiply_int8_tile<V, kRows + 1>...};
}

/// Micro-kernels in vectors. Lives as long as a task.
template <class V>
struct VectorTiles {
  static constexpr int kRows = V::kTileRows;

  /// As multiply_int8_tile, for 1..kRows rows. Nothing happens beside it.
  template <class Beside>
  static void multiply(const Int8Rows& x, std::int64_t rows, const std::byte* panel,
                       std::int64_t groups, Upcoming upcoming, std::int32_t* sums, const Beside&) {
    static constexpr auto kTiles = multiply_int8_tiles<V>(std::make_integer_sequence<int, kRows>{});
    kTiles[static_cast<std::size_t>(rows)](x.values, x.stride, panel, groups, upcoming, sums);
  }
};

/// out = residual + activation(scale_n (scale_r sum + offset_r sum_n) + middle_n total_r + bias)
/// for one vector of columns of a tile, of which `count` exist.
template <class V, ops::Activation kActivation, bool kWhole>
void finish_int8_columns(const Int8Task& task, const PanelTile& tile, std::int64_t column,
                         std::int64_t count, const std::int32_t* sums) {
  using Reg = typename V::Reg;
  const Reg w_scale = V::load(task.weights.scale + column);
  const Reg w_middle = V::load(task.weights.middle + column);
  const Reg w_sum = V::load(task.weights.sum + column);
  const Reg bias = V::load(task.weights.bias + column);
  const float* const scales = task.x.scale + tile.row;
  const float* const offsets = task.x.offset + tile.row;
  const float* const totals = task.x.total + tile.row;
  const float* residual = task.residual;
  if (residual != nullptr) residual += tile.row * task.residual_stride + column;
  float* out = task.out + tile.row * task.out_stride + column;
  for (std::int64_t r = 0; r < tile.rows; ++r) {
    const Reg sum = V::to_float(V::load_int(sums + r * kPanelColumns));
    const Reg product =
        V::fma(V::broadcast(scales[r]), sum, V::mul(V::broadcast(offsets[r]), w_sum));
    const Reg added = V::fma(w_middle, V::broadcast(totals[r]), bias);
    Reg y = activate_int8<V, kActivation>(V::fma(w_scale, product, added));
    if (residual != nullptr) {
      y = V::add(kWhole ? V::load(residual) : V::load_some(residual, count), y);
      residual += task.residual_stride;
    }
    if constexpr (kWhole) {
      V::store(out, y);
    } else {
      V::store_some(out, y, count);
    }
    out += task.out_stride;
  }
}

/// Adds to the sums of a row what its wide numbers lack.
template <class V>
void add_wide(const WideNumbers& wide, const std::byte* panel, std::int32_t* sums) {
  for (std::int32_t i = 0; i < wide.count; ++i) {
    const WideNumber& number = wide.numbers[i];
    const std::byte* const weights = panel + number.k / kGroupK * kGroupBytes;
    for (std::int64_t c = 0; c < kPanelColumns; c += V::kWidth) {
      V::store_int(sums + c, V::add_int8(V::load_int(sums + c), number.excess,
                                         V::load_int(weights + c * kGroupK),
                                         static_cast<int>(number.k % kGroupK)));
    }
  }
}

/// What multiply_panels does for an int8 layer. Lives as long as a task.
template <class V, ops::Activation kActivation, class Tiles>
struct Int8Work {
  using Vector = V;
  using Sum = std::int32_t;
  static constexpr int kRows = Tiles::kRows;

  const Int8Task& task;
  Tiles tiles = {};

  [[nodiscard]] std::int64_t num_rows() const { return task.rows; }
  [[nodiscard]] std::int64_t num_panels() const { return task.num_panels; }
  [[nodiscard]] std::int64_t panel_rows() const { return task.weights.groups; }
  [[nodiscard]] std::int64_t beside_calls() const { return task.weights.groups / kStepGroups; }
  [[nodiscard]] const std::byte* panel(std::int64_t column) const {
    return task.weights.panels + column / kPanelColumns * panel_rows() * kPanelRowBytes;
  }

  template <class Beside>
  void multiply(const PanelTile& tile, Upcoming upcoming, Sum* sums, const Beside& beside) {
    Int8Rows x = task.x;
    x.values += tile.row * x.stride;
    tiles.multiply(x, tile.rows, panel(tile.column), panel_rows(), upcoming, sums, beside);
  }

  void finish(const PanelTile& tile, Sum* sums) const {
    for (std::int64_t r = 0; r < tile.rows; ++r)
      add_wide<V>(task.x.wide[tile.row + r], panel(tile.column), sums + r * kPanelColumns);
    for (std::int64_t c = 0; c < kPanelColumns; c += V::kWidth) {
      const std::int64_t column = tile.column + c;
      const std::int64_t count = task.columns - column;
      if (count >= V::kWidth) {
        finish_int8_columns<V, kActivation, true>(task, tile, column, count, sums + c);
      } else if (count > 0) {
        finish_int8_columns<V, kActivation, false>(task, tile, column, count, sums + c);
      }
    }
  }
};

/// The leaf's second half: one task from quantized rows to finished output.
template <class V, class Tiles>
void multiply_int8(const Int8Task& task) {
  with_constant(task.activation, [&]<ops::Activation kActivation>() {
    Int8Work<V, kActivation, Tiles> work{task};
    multiply_panels(work);
  });
}

}  // namespace fovea::cpu
