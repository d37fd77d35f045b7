#pragma once

#include <cstddef>
#include <cstdint>

#include "fovea/tower/ops/linear.h"

// The seam between the portable half of the linear layer (packing, task shapes) and its leaves, one
// per instruction set: plain data and one function pointer. Nothing here has an inline body, so the
// linker can never keep a copy that was compiled for another instruction set.
namespace fovea::cpu {

/// Columns of one panel of packed weights. A panel is [in_features][kPanelColumns].
inline constexpr std::int64_t kPanelColumns = 32;
inline constexpr std::int64_t kHalfPanel = kPanelColumns / 2;
/// Most rows of one task: 5 tiles of 14 rows share what is fetched of the weights.
inline constexpr std::int64_t kMaxTaskRows = 70;
/// Most that a leaf may choose: values of k that one visit of a panel covers, and panels of one
/// task, which share the copy of the rows. With 70 rows of 512 values, 64 KB of f32 weights and 32
/// panels, what a task works in takes 500 KB; with half of both, 250 KB. It has to stay in the L2
/// of the thread that runs it.
inline constexpr std::int64_t kMaxBlockK = 512;
inline constexpr std::int64_t kMaxTaskPanels = 32;

inline constexpr std::int64_t kLineFloats = 16;  // of a cache line

/// Distance of two copied rows: a cache line more than a power of two, so that the rows of a tile
/// do not compete for the same cache set.
inline constexpr std::int64_t kRowStride = kMaxBlockK + kLineFloats;

inline constexpr std::int64_t kLineBytes = 64;

/// Memory that will be needed next, prefetched step by step during the current work.
struct Upcoming {
  const std::byte* data;  ///< any address may be prefetched
  std::int64_t step;      ///< bytes to move on per row of a panel, at most two cache lines
};

/// Memory that a task works in; too much for small stacks. Nothing in it outlives the task.
struct LinearScratch {
  alignas(64) float rows[kMaxTaskRows * kRowStride];
  alignas(64) float widened[kMaxBlockK * kPanelColumns];
  alignas(64) float sums[kMaxTaskPanels * kMaxTaskRows * kPanelColumns];
};

/// One block of rows times one group of neighbouring panels.
struct LinearTask {
  const float* x;  ///< first row of the task
  std::int64_t x_stride;
  std::int64_t rows;  ///< 1..kMaxTaskRows

  const std::byte* panels;  ///< first panel of the task
  bool paired;              ///< weights are bf16, columns j and j + 16 sharing 32 bits; else f32
  std::int64_t row_bytes;   ///< of one row (one k) of a panel
  std::int64_t num_panels;  ///< 1..kMaxTaskPanels
  std::int64_t in_features;

  const float* bias;      ///< [num_panels * kPanelColumns], zeros where there is none
  const float* residual;  ///< element of the first row and column, or null
  std::int64_t residual_stride;
  ops::Activation activation;
  float* out;  ///< element of the first row and column
  std::int64_t out_stride;
  std::int64_t columns;    ///< columns that exist; less than those of the panels at the right edge
  LinearScratch* scratch;  ///< of the thread that runs the task
};

struct LinearLeaf {
  void (*run)(const LinearTask& task);
  std::int64_t tile_rows;    ///< rows that the micro-kernel computes at once
  std::int64_t task_panels;  ///< most panels of a task, 1..kMaxTaskPanels
};

}  // namespace fovea::cpu
