#pragma once

// The GEMM in f32, written once for all instruction sets. Include only from the unit of an
// instruction set: all are templates over its vector type V.
//
// Order of work (GotoBLAS with the roles of the operands exchanged, because the weights are packed
// once and the rows change): for every block of k, the rows of the task are copied side by side
// (`rows`, L2); then panel by panel, kBlockK x 32 weights (L1 or L2) meet all rows, one register
// tile of kTileRows rows at a time. Partial sums wait in `sums` (L2) for the next block of k. Every
// element is one chain of multiply-adds with k ascending, whatever tile or task it falls in.

#include "ops/cpu/gemm/finish.h"
#include "ops/cpu/gemm/panel_loop.h"

namespace fovea::cpu {

/// Most rows of one task: 5 tiles of 14 rows share what is fetched of the weights.
inline constexpr std::int64_t kMaxTaskRows = 70;
inline constexpr std::int64_t kLineFloats = 16;  // of a cache line

/// Memory that a task works in; too much for small stacks. Nothing in it outlives the task. With 70
/// rows of 512 values, 64 KB of f32 weights and 32 panels it has 500 KB; with half of both, 250 KB.
/// It has to stay in the L2 of the thread that runs the task.
/// @tparam kBlockK values of k that one visit of a panel covers.
/// @tparam kTaskPanels most panels of a task, which share the copy of the rows.
template <class V, int kBlockK, int kTaskPanels>
struct F32Scratch {
  /// Distance of two copied rows: a cache line more than a power of two, so that the rows of a tile
  /// do not compete for the same cache set.
  static constexpr std::int64_t kRowStride = kBlockK + kLineFloats;

  alignas(64) float rows[kMaxTaskRows * kRowStride];
  alignas(64) float widened[kBlockK * kPanelColumns];
  alignas(64) float sums[kTaskPanels][kMaxTaskRows * kPanelColumns];
};

/// Rows as they are copied, at a distance that the compiler knows.
template <class Scratch>
struct CopiedRows {
  static constexpr std::int64_t stride = Scratch::kRowStride * std::int64_t{sizeof(float)};

  const std::byte* values;
};

/// A block of bf16 weights, [depth][kHalfPanel] words with columns j and j + kHalfPanel in one.
/// kKeep: what is read is left in `widened`.
template <class V, bool kKeep>
struct PairedWeights {
  const std::byte* words;
  float* widened;

  void load(std::int64_t k, int column, typename V::Reg& left, typename V::Reg& right) const {
    const typename V::Int both = V::load_int(words + (k * kHalfPanel + column) * kGroupBytes);
    left = V::lower_bf16(both);
    right = V::upper_bf16(both);
    if constexpr (kKeep) {
      V::store(widened + k * kPanelColumns + column, left);
      V::store(widened + k * kPanelColumns + column + kHalfPanel, right);
    }
  }
};

/// A block of k of one panel, and the one that comes after it.
struct WeightBlock {
  const std::byte* rows;
  const std::byte* next;
  std::int64_t first;  ///< k
  std::int64_t depth;
};

/// sums (+)= rows * weights in register tiles of nearly equal height. The first tile widens bf16
/// weights as it reads them, the others find them widened in the cache; together they prefetch the
/// next block of weights.
template <class V, int kTileRows, class Scratch>
void multiply_block(const GemmTask& task, const WeightBlock& block, Scratch& scratch, float* sums) {
  using Numbers = F32Numbers<V>;
  using Rows = CopiedRows<Scratch>;
  const bool is_paired = task.row_bytes != kPanelRowBytes;
  const std::int64_t num_tiles = (task.rows + kTileRows - 1) / kTileRows;
  Upcoming upcoming{block.next, (task.row_bytes + num_tiles - 1) / num_tiles};
  for_tiles<kTileRows>(task.rows, [&](std::int64_t row, std::int64_t rows) {
    const Rows x{reinterpret_cast<const std::byte*>(scratch.rows + row * Scratch::kRowStride)};
    const auto multiply = [&]<class Weights>(Weights weights) {
      multiply_tile_of<Numbers, kTileRows, Rows, Weights>(rows)(
          x, weights, block.depth, block.first > 0, upcoming, sums + row * kPanelColumns);
    };
    if (!is_paired) {
      multiply(PanelWeights<Numbers>{block.rows});
    } else if (row > 0) {
      multiply(PanelWeights<Numbers>{reinterpret_cast<const std::byte*>(scratch.widened)});
    } else if (num_tiles > 1) {
      multiply(PairedWeights<V, true>{block.rows, scratch.widened});
    } else {
      multiply(PairedWeights<V, false>{block.rows, scratch.widened});
    }
    upcoming.data += upcoming.step * block.depth;
  });
}

/// The whole task at once, row by row: the rows of `out` lie far apart, often on a page each.
template <class V, ops::Activation kActivation, class Scratch>
void finish_task(const GemmTask& task, const Scratch& scratch) {
  for (std::int64_t r = 0; r < task.rows; ++r) {
    for (std::int64_t panel = 0; panel < task.num_panels; ++panel) {
      finish_row<V, kActivation>(task, r, panel * kPanelColumns,
                                 scratch.sums[panel] + r * kPanelColumns);
    }
  }
}

/// Copies `depth` values of every row, from k on, into the scratch. The pieces are short and far
/// apart, which defeats the hardware prefetchers, so this prefetches them some rows ahead.
template <class V, class Scratch>
void copy_rows(const GemmTask& task, std::int64_t k, std::int64_t depth, Scratch& scratch) {
  constexpr std::int64_t kRowsAhead = 8;
  for (std::int64_t r = 0; r < task.rows; ++r) {
    const std::byte* const row = task.x + r * task.x_stride;
    const float* const from = reinterpret_cast<const float*>(row) + k;
    float* const to = scratch.rows + r * Scratch::kRowStride;
    const auto* const ahead = reinterpret_cast<const std::byte*>(from) + kRowsAhead * task.x_stride;
    for (std::int64_t i = 0; i < depth; i += kLineFloats)
      V::prefetch(ahead + i * std::int64_t{sizeof(float)});
    std::int64_t i = 0;
    for (; i + V::kWidth <= depth; i += V::kWidth) V::store(to + i, V::load(from + i));
    if (i < depth) V::store(to + i, V::load_some(from + i, depth - i));
  }
}

template <class V, int kTileRows, int kBlockK, int kTaskPanels>
void multiply_f32(const GemmTask& task) {
  using Scratch = F32Scratch<V, kBlockK, kTaskPanels>;
  Scratch& scratch = *reinterpret_cast<Scratch*>(task.scratch);
  for (std::int64_t k = 0; k < task.depth; k += kBlockK) {
    const std::int64_t left = task.depth - k;
    const std::int64_t depth = left < kBlockK ? left : kBlockK;
    copy_rows<V>(task, k, depth, scratch);
    for (std::int64_t panel = 0; panel < task.num_panels; ++panel) {
      const std::byte* const rows = task.panels + panel * task.panel_bytes + k * task.row_bytes;
      const bool is_last = panel + 1 == task.num_panels;
      const std::byte* const next =
          is_last ? task.panels + (k + depth) * task.row_bytes : rows + task.panel_bytes;
      multiply_block<V, kTileRows>(task, {rows, next, k, depth}, scratch, scratch.sums[panel]);
    }
  }
  with_constant(task.activation,
                [&]<ops::Activation kActivation>() { finish_task<V, kActivation>(task, scratch); });
}

template <class V, int kTileRows, int kBlockK, int kTaskPanels>
constexpr GemmKernel f32_kernel(const char* name) {
  return {.name = name,
          .format = GemmFormat::kF32,
          .prepare = nullptr,
          .multiply = &multiply_f32<V, kTileRows, kBlockK, kTaskPanels>,
          .limits = {.tile_rows = kTileRows, .rows = kMaxTaskRows, .panels = kTaskPanels},
          .scratch_bytes = sizeof(F32Scratch<V, kBlockK, kTaskPanels>)};
}

}  // namespace fovea::cpu
