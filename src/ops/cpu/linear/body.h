#pragma once

// The linear layer of one task, written once for all instruction sets.
//
// Include only from a leaf (linear_<isa>.cpp), which defines a vector type V in an anonymous
// namespace: every function below is a template over V, so it gets internal linkage and is never
// merged with the copy of another instruction set.
//
// Order of work (GotoBLAS with the roles of the operands exchanged, because the weights are packed
// once and the rows change): for every block of k, the rows of the task are copied side by side
// (`rows`, L2); then panel by panel, V::kBlockK x 32 weights (L1 or L2) meet all rows, one register
// tile of V::kTileRows rows at a time. Partial sums wait in `sums` (L2) for the next block of k.
// Every element is one chain of multiply-adds with k ascending, whatever tile or task it falls in.

#include <array>
#include <utility>

#include "ops/cpu/linear/task.h"
#include "ops/cpu/vector/activation.h"

namespace fovea::cpu {

/// A block of f32 weights, [depth][kPanelColumns].
template <class V>
struct PlainWeights {
  const float* data;

  void load(std::int64_t k, int column, typename V::Reg& left, typename V::Reg& right) const {
    left = V::load(data + k * kPanelColumns + column);
    right = V::load(data + k * kPanelColumns + column + kHalfPanel);
  }
};

/// A block of bf16 weights, [depth][kHalfPanel] pairs. kKeep: what is read is left in `widened`.
template <class V, bool kKeep>
struct PairedWeights {
  const std::uint32_t* pairs;
  float* widened;

  void load(std::int64_t k, int column, typename V::Reg& left, typename V::Reg& right) const {
    const typename V::Int both = V::load_int(pairs + k * kHalfPanel + column);
    left = V::lower_bf16(both);
    right = V::upper_bf16(both);
    if constexpr (kKeep) {
      V::store(widened + k * kPanelColumns + column, left);
      V::store(widened + k * kPanelColumns + column + kHalfPanel, right);
    }
  }
};

/// sums[r][0..32) (+)= sum_k rows[r][k] * weights[k][0..32), for kRows rows: the micro-kernel.
/// Holds two vectors of every row at a time, one in each half of the panel.
template <class V, int kRows, class Weights>
void multiply_tile(const float* rows, Weights weights, std::int64_t depth, bool add,
                   Upcoming upcoming, float* sums) {
  for (int column = 0; column < kHalfPanel; column += V::kWidth) {
    typename V::Reg left[kRows];
    typename V::Reg right[kRows];
    for (int r = 0; r < kRows; ++r) {
      const float* const sum = sums + r * kPanelColumns + column;
      left[r] = add ? V::load(sum) : V::broadcast(0.0f);
      right[r] = add ? V::load(sum + kHalfPanel) : V::broadcast(0.0f);
    }
    const std::byte* next = upcoming.data;
    for (std::int64_t k = 0; k < depth; ++k) {
      V::prefetch(next);
      V::prefetch(next + kLineBytes);
      next += upcoming.step;
      typename V::Reg w_left;
      typename V::Reg w_right;
      weights.load(k, column, w_left, w_right);
      for (int r = 0; r < kRows; ++r) {
        const typename V::Reg x = V::broadcast(rows[r * kRowStride + k]);
        left[r] = V::fma(x, w_left, left[r]);
        right[r] = V::fma(x, w_right, right[r]);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      float* const sum = sums + r * kPanelColumns + column;
      V::store(sum, left[r]);
      V::store(sum + kHalfPanel, right[r]);
    }
  }
}

template <class Weights>
using MultiplyTile = void (*)(const float*, Weights, std::int64_t, bool, Upcoming, float*);

/// Micro-kernels for 1..V::kTileRows rows; entry 0 is never used.
template <class V, class Weights, int... kRows>
constexpr auto multiply_tiles(std::integer_sequence<int, kRows...>) {
  return std::array<MultiplyTile<Weights>, sizeof...(kRows) + 1>{
      nullptr, &multiply_tile<V, kRows + 1, Weights>...};
}

template <class V, class Weights>
void multiply_tile(std::int64_t num_rows, const float* rows, Weights weights, std::int64_t depth,
                   bool add, Upcoming upcoming, float* sums) {
  static constexpr auto kTiles =
      multiply_tiles<V, Weights>(std::make_integer_sequence<int, V::kTileRows>{});
  kTiles[static_cast<std::size_t>(num_rows)](rows, weights, depth, add, upcoming, sums);
}

/// What multiply_block works on: one block of k of one panel, and all rows of the task.
struct LinearBlock {
  const std::byte* weights;  ///< [depth] rows of the panel
  bool paired;
  std::int64_t row_bytes;
  const std::byte* next;  ///< the block that comes after this one
  std::int64_t depth;
  std::int64_t num_rows;
  bool add;  ///< to the sums of the block of k before
};

/// sums (+)= rows * weights in register tiles of nearly equal height. The first tile widens bf16
/// weights as it reads them, the others find them widened in the cache; together they prefetch the
/// next block of weights.
template <class V>
void multiply_block(const LinearBlock& block, const float* rows, float* widened, float* sums) {
  const std::int64_t num_tiles = (block.num_rows + V::kTileRows - 1) / V::kTileRows;
  const std::int64_t height = block.num_rows / num_tiles;
  const std::int64_t num_taller = block.num_rows % num_tiles;
  const std::int64_t step = (block.row_bytes + num_tiles - 1) / num_tiles;
  const auto* const pairs = reinterpret_cast<const std::uint32_t*>(block.weights);
  const auto* const plain = block.paired ? widened : reinterpret_cast<const float*>(block.weights);
  Upcoming upcoming{block.next, step};
  for (std::int64_t tile = 0; tile < num_tiles; ++tile) {
    const std::int64_t tile_rows = height + (tile < num_taller ? 1 : 0);
    const auto multiply = [&](auto weights) {
      multiply_tile<V>(tile_rows, rows, weights, block.depth, block.add, upcoming, sums);
    };
    if (tile > 0 || !block.paired) {
      multiply(PlainWeights<V>{plain});
    } else if (num_tiles > 1) {
      multiply(PairedWeights<V, true>{pairs, widened});
    } else {
      multiply(PairedWeights<V, false>{pairs, widened});
    }
    rows += tile_rows * kRowStride;
    sums += tile_rows * kPanelColumns;
    upcoming.data += step * block.depth;
  }
}

/// out = residual + activation(sum + bias) for up to one vector of neighbouring columns.
template <class V, ops::Activation kActivation>
void finish_vector(const float* sum, const float* bias, const float* residual, float* out,
                   std::int64_t count) {
  typename V::Reg y = activate<V, kActivation>(V::add(V::load(sum), V::load(bias)));
  if (count >= V::kWidth) {
    if (residual != nullptr) y = V::add(V::load(residual), y);
    V::store(out, y);
  } else {
    if (residual != nullptr) y = V::add(V::load_some(residual, count), y);
    V::store_some(out, y, count);
  }
}

/// The whole task at once, row by row: the rows of `out` lie far apart, often on a page each.
template <class V, ops::Activation kActivation>
void finish(const LinearTask& task, const float* sums) {
  for (std::int64_t r = 0; r < task.rows; ++r) {
    const float* const residual =
        task.residual == nullptr ? nullptr : task.residual + r * task.residual_stride;
    float* const out = task.out + r * task.out_stride;
    for (std::int64_t c = 0; c < task.columns; c += V::kWidth) {
      const std::int64_t panel = c / kPanelColumns;
      const float* const sum =
          sums + (panel * kMaxTaskRows + r) * kPanelColumns + c % kPanelColumns;
      finish_vector<V, kActivation>(sum, task.bias + c,
                                    residual == nullptr ? nullptr : residual + c, out + c,
                                    task.columns - c);
    }
  }
}

template <class V>
void finish(const LinearTask& task, const float* sums) {
  with_constant(task.activation,
                [&]<ops::Activation kActivation>() { finish<V, kActivation>(task, sums); });
}

/// Copies `depth` values of every row, from k on, into the scratch. The pieces are short and far
/// apart, which defeats the hardware prefetchers, so this prefetches them some rows ahead.
template <class V>
void copy_rows(const LinearTask& task, std::int64_t k, std::int64_t depth, float* rows) {
  constexpr std::int64_t kRowsAhead = 8;
  for (std::int64_t r = 0; r < task.rows; ++r) {
    const float* const from = task.x + r * task.x_stride + k;
    float* const to = rows + r * kRowStride;
    for (std::int64_t i = 0; i < depth; i += kLineFloats)
      V::prefetch(reinterpret_cast<const std::byte*>(from + kRowsAhead * task.x_stride + i));
    std::int64_t i = 0;
    for (; i + V::kWidth <= depth; i += V::kWidth) V::store(to + i, V::load(from + i));
    if (i < depth) V::store(to + i, V::load_some(from + i, depth - i));
  }
}

/// The leaf: one task from activations to finished output.
template <class V>
void run_linear_task(const LinearTask& task) {
  static_assert(V::kBlockK <= kMaxBlockK);
  LinearScratch& scratch = *task.scratch;
  const std::int64_t panel_bytes = task.in_features * task.row_bytes;
  for (std::int64_t k = 0; k < task.in_features; k += V::kBlockK) {
    const std::int64_t left = task.in_features - k;
    const std::int64_t depth = left < V::kBlockK ? left : V::kBlockK;
    copy_rows<V>(task, k, depth, scratch.rows);
    for (std::int64_t panel = 0; panel < task.num_panels; ++panel) {
      const std::byte* const weights = task.panels + panel * panel_bytes + k * task.row_bytes;
      const bool last = panel + 1 == task.num_panels;
      const LinearBlock block{
          .weights = weights,
          .paired = task.paired,
          .row_bytes = task.row_bytes,
          .next = last ? task.panels + (k + depth) * task.row_bytes : weights + panel_bytes,
          .depth = depth,
          .num_rows = task.rows,
          .add = k > 0};
      multiply_block<V>(block, scratch.rows, scratch.widened,
                        scratch.sums + panel * kMaxTaskRows * kPanelColumns);
    }
  }
  finish<V>(task, scratch.sums);
}

}  // namespace fovea::cpu
