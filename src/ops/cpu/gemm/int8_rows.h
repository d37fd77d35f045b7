#pragma once

// Rows as integers of 8 bits, written once for all instruction sets. Include only from the unit of
// an instruction set: all are templates over its vector type V.

#include "ops/cpu/gemm/task.h"

namespace fovea::cpu {

/// Rows with so many numbers may have outliers: enough that kMaxOutliers are few, and not too many
/// for sums of 32 bits: 16384 * 255 * 127 + kMaxOutliers * 127 * (255 << kMaxHalvings) < 2^31.
inline constexpr std::int64_t kFewestOutlierFeatures = 256;
inline constexpr std::int64_t kMostOutlierFeatures = 16384;
/// Either end of the range of a row is halved so often at most.
inline constexpr int kMaxHalvings = 11;

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

/// Whether at most kMaxOutliers elements lie outside of the range.
template <class V>
bool leaves_few(const RowRange& range, const float* x, std::int64_t cols) {
  const typename V::Reg low = V::broadcast(range.low);
  const typename V::Reg high = V::broadcast(range.high);
  int count = 0;
  for (std::int64_t c = 0; c < cols && count <= kMaxOutliers; c += V::kWidth)
    count += V::count_outside(load_row<V>(x + c, cols - c), low, high);
  return count <= kMaxOutliers;
}

/// Halves first the upper, then the lower end of the range as long as few numbers become outliers.
template <class V>
RowRange without_outliers(RowRange range, const float* x, std::int64_t cols) {
  if (cols < kFewestOutlierFeatures || cols > kMostOutlierFeatures) return range;
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

/// Lists the outliers of a row, which has at most kMaxOutliers of them.
template <class V>
void list_outliers(const float* x, std::int64_t cols, RowRange range, float per_step,
                   Int8Row& row) {
  const typename V::Reg low = V::broadcast(range.low);
  const typename V::Reg high = V::broadcast(range.high);
  for (std::int64_t c = 0; c < cols; c += V::kWidth) {
    if (V::count_outside(load_row<V>(x + c, cols - c), low, high) == 0) continue;
    for (std::int64_t k = c; k < cols && k < c + V::kWidth; ++k) {
      if (!(x[k] < range.low || x[k] > range.high)) continue;
      const float steps = __builtin_nearbyintf((x[k] - range.low) * per_step);
      const float excess = x[k] < range.low ? steps : steps - 255.0f;
      row.outliers[row.num_outliers++] = {static_cast<std::int32_t>(k),
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

/// The sum of what a row became.
template <class V>
float total_of(const Int8Row& row, const std::uint8_t* values, std::int64_t cols) {
  typename V::Int sums = V::zero();
  std::int64_t k = 0;
  for (; k + kByteVectors * V::kWidth <= cols; k += kByteVectors * V::kWidth)
    sums = V::add_bytes(sums, values + k);
  std::int32_t lanes[V::kWidth];
  V::store_int(lanes, sums);
  std::int32_t sum = 0;
  for (const std::int32_t lane : lanes) sum += lane;
  for (; k < cols; ++k) sum += values[k];
  for (std::int32_t i = 0; i < row.num_outliers; ++i) sum += row.outliers[i].excess;
  const float steps = row.scale * static_cast<float>(sum);
  return steps + row.offset * static_cast<float>(cols);
}

/// 256 steps from the smallest element of a row to the largest that is no outlier.
template <class V>
void quantize_row(const float* x, std::int64_t cols, std::uint8_t* values, Int8Row& row) {
  constexpr float kSteps = 255.0f;
  constexpr float kSmallestRange = 1e-25f;  // below it a row counts as constant
  constexpr float kLargestRange = 1e38f;
  const RowRange whole = range_of<V>(x, cols);
  const bool may_have_outliers = whole.poison == 0.0f && whole.high - whole.low > kSmallestRange &&
                                 whole.high - whole.low <= kLargestRange;
  const RowRange range = may_have_outliers ? without_outliers<V>(whole, x, cols) : whole;
  const float width = range.high - range.low;
  const bool is_constant = width < kSmallestRange;
  const float steps = is_constant ? 0.0f : kSteps / width;
  row.scale = (is_constant ? 0.0f : width / kSteps) + range.poison;
  row.offset = range.low;
  row.num_outliers = 0;
  if (range.low != whole.low || range.high != whole.high)
    list_outliers<V>(x, cols, range, steps, row);
  quantize_values<V>(x, cols, range.low, steps, values);
  row.total = total_of<V>(row, values, cols);
}

template <class V>
void quantize_rows(const PrepareTask& task) {
  for (std::int64_t r = 0; r < task.rows; ++r) {
    quantize_row<V>(task.x + r * task.cols, task.cols,
                    reinterpret_cast<std::uint8_t*>(task.values + r * task.stride),
                    task.int8_rows[r]);
  }
}

}  // namespace fovea::cpu
