#pragma once

// The linear layer of one task, written once for all instruction sets.
//
// Include only from a leaf (linear_<isa>.cpp), which defines a vector type V in an anonymous
// namespace: every function below is a template over V, so it gets internal linkage and is never
// merged with the copy of another instruction set.
//
// Order of work (GotoBLAS with the roles of the operands exchanged, because the weights are packed
// once and the rows change): for every block of k, the rows of the task are copied side by side
// (`rows`, L2); then panel by panel, kBlockK x 32 weights (L1) meet all rows, one register tile of
// V::kTileRows rows at a time. Partial sums wait in `sums` (L2) for the next block of k.
// Every element is one chain of multiply-adds with k ascending, whatever tile or task it falls in.

#include <array>
#include <cstring>
#include <utility>

#include "ops/cpu/linear_activation.h"
#include "ops/cpu/linear_task.h"

namespace fovea::cpu {

/// Distance of two copied rows: 64 bytes more than a power of two, so that the rows of a tile do
/// not compete for the same cache set.
inline constexpr std::int64_t kRowStride = kBlockK + 16;

/// Scratch of one task, on the stack of the thread that runs it.
template <class V>
struct LinearScratch {
  alignas(64) float rows[kMaxTaskRows * kRowStride];
  alignas(64) float weights[kBlockK * kPanelColumns];
  alignas(64) float sums[kMaxTaskPanels * kMaxTaskRows * kPanelColumns];
};

/// sums[r][0..32) (+)= sum_k rows[r][k] * weights[k][0..32), for kRows rows.
template <class V, int kRows>
void multiply_tile(const float* rows, const float* weights, std::int64_t depth, bool add,
                   float* sums) {
  constexpr int kColumns = 2 * V::kWidth;
  for (int column = 0; column < kPanelColumns; column += kColumns) {
    typename V::Reg left[kRows];
    typename V::Reg right[kRows];
    for (int r = 0; r < kRows; ++r) {
      float* const sum = sums + r * kPanelColumns + column;
      left[r] = add ? V::load(sum) : V::broadcast(0.0f);
      right[r] = add ? V::load(sum + V::kWidth) : V::broadcast(0.0f);
    }
    for (std::int64_t k = 0; k < depth; ++k) {
      const typename V::Reg w_left = V::load(weights + k * kPanelColumns + column);
      const typename V::Reg w_right = V::load(weights + k * kPanelColumns + column + V::kWidth);
      for (int r = 0; r < kRows; ++r) {
        const typename V::Reg x = V::broadcast(rows[r * kRowStride + k]);
        left[r] = V::fma(x, w_left, left[r]);
        right[r] = V::fma(x, w_right, right[r]);
      }
    }
    for (int r = 0; r < kRows; ++r) {
      float* const sum = sums + r * kPanelColumns + column;
      V::store(sum, left[r]);
      V::store(sum + V::kWidth, right[r]);
    }
  }
}

using MultiplyTile = void (*)(const float*, const float*, std::int64_t, bool, float*);

/// Micro-kernels for 1..V::kTileRows rows; entry 0 is never used.
template <class V, int... kRows>
constexpr auto multiply_tiles(std::integer_sequence<int, kRows...>) {
  return std::array<MultiplyTile, sizeof...(kRows) + 1>{nullptr, &multiply_tile<V, kRows + 1>...};
}

/// All rows of the task against one block of one panel, in tiles of nearly equal height.
template <class V>
void multiply_panel(const float* rows, const float* weights, std::int64_t num_rows,
                    std::int64_t depth, bool add, float* sums) {
  static constexpr auto kTiles = multiply_tiles<V>(std::make_integer_sequence<int, V::kTileRows>{});
  const std::int64_t num_tiles = (num_rows + V::kTileRows - 1) / V::kTileRows;
  for (std::int64_t tile = 0; tile < num_tiles; ++tile) {
    const std::int64_t begin = tile * num_rows / num_tiles;
    const std::int64_t end = (tile + 1) * num_rows / num_tiles;
    kTiles[static_cast<std::size_t>(end - begin)](rows + begin * kRowStride, weights, depth, add,
                                                  sums + begin * kPanelColumns);
  }
}

/// The f32 weights of `depth` rows of a panel: the panel itself, or its bf16 widened to `scratch`.
template <class V>
const float* panel_block(DType dtype, const std::byte* panel, std::int64_t k, std::int64_t depth,
                         float* scratch) {
  if (dtype == DType::kF32) return reinterpret_cast<const float*>(panel) + k * kPanelColumns;
  const auto* pairs = reinterpret_cast<const std::uint32_t*>(panel) + k * (kPanelColumns / 2);
  for (std::int64_t i = 0; i < depth; ++i) {
    for (int j = 0; j < kPanelColumns / 2; j += V::kWidth) {
      V::widen_pairs(pairs + i * (kPanelColumns / 2) + j, scratch + i * kPanelColumns + j,
                     scratch + i * kPanelColumns + kPanelColumns / 2 + j);
    }
  }
  return scratch;
}

/// out = residual + activation(sums + bias) for all rows of one panel.
template <class V, ops::Activation kActivation>
void finish_panel(const LinearTask& task, std::int64_t panel, const float* sums) {
  const std::int64_t first = panel * kPanelColumns;
  for (int column = 0; column < kPanelColumns; column += V::kWidth) {
    const std::int64_t count = task.columns - first - column;  // may exceed the vector
    if (count <= 0) return;
    const typename V::Reg bias = V::load(task.bias + first + column);
    for (std::int64_t r = 0; r < task.rows; ++r) {
      typename V::Reg y = V::add(V::load(sums + r * kPanelColumns + column), bias);
      y = activate<V, kActivation>(y);
      const std::int64_t at = first + column;
      if (task.residual != nullptr) {
        const float* const residual = task.residual + r * task.residual_stride + at;
        y = V::add(count >= V::kWidth ? V::load(residual) : V::load_some(residual, count), y);
      }
      float* const out = task.out + r * task.out_stride + at;
      if (count >= V::kWidth) {
        V::store(out, y);
      } else {
        V::store_some(out, y, count);
      }
    }
  }
}

template <class V>
void finish_panel(const LinearTask& task, std::int64_t panel, const float* sums) {
  using ops::Activation;
  switch (task.activation) {
    case Activation::kNone: return finish_panel<V, Activation::kNone>(task, panel, sums);
    case Activation::kGeluTanh: return finish_panel<V, Activation::kGeluTanh>(task, panel, sums);
    case Activation::kGeluErf: return finish_panel<V, Activation::kGeluErf>(task, panel, sums);
    case Activation::kQuickGelu: return finish_panel<V, Activation::kQuickGelu>(task, panel, sums);
    case Activation::kSilu: return finish_panel<V, Activation::kSilu>(task, panel, sums);
  }
}

/// The leaf: one task from activations to finished output.
template <class V>
void run_linear_task(const LinearTask& task) {
  LinearScratch<V> scratch;
  const std::size_t panel_bytes =
      static_cast<std::size_t>(task.in_features * kPanelColumns) * size_of(task.weight_dtype);
  for (std::int64_t k = 0; k < task.in_features; k += kBlockK) {
    const std::int64_t depth = task.in_features - k < kBlockK ? task.in_features - k : kBlockK;
    for (std::int64_t r = 0; r < task.rows; ++r) {
      std::memcpy(scratch.rows + r * kRowStride, task.x + r * task.x_stride + k,
                  static_cast<std::size_t>(depth) * sizeof(float));
    }
    const bool last = k + depth == task.in_features;
    for (std::int64_t panel = 0; panel < task.num_panels; ++panel) {
      float* const sums = scratch.sums + panel * kMaxTaskRows * kPanelColumns;
      const float* const weights = panel_block<V>(
          task.weight_dtype, task.panels + static_cast<std::size_t>(panel) * panel_bytes, k, depth,
          scratch.weights);
      multiply_panel<V>(scratch.rows, weights, task.rows, depth, /*add=*/k > 0, sums);
      if (last) finish_panel<V>(task, panel, sums);
    }
  }
}

}  // namespace fovea::cpu
