#pragma once

#include <cstddef>
#include <cstdint>

#include "fovea/tower/ops/linear.h"
#include "ops/cpu/linear/task.h"

// The seam between the portable half of the bf16 linear layer (packing, tasks) and its leaves, one
// per instruction set: plain data and function pointers, as in ops/cpu/linear/task.h.
namespace fovea::cpu {

/// Values of k that one instruction multiplies: they lie side by side in rows and in weights.
inline constexpr std::int64_t kPairK = 2;
/// Bytes of the weights of one pair: 32 columns, two values each. A panel of packed weights is
/// [pairs][kPanelColumns][kPairK] in whole steps, zeros where k or a column does not exist.
inline constexpr std::int64_t kPairBytes = kPanelColumns * kPairK * 2;
/// Pairs that the widest instruction multiplies in one step.
inline constexpr std::int64_t kStepPairs = 16;
inline constexpr std::int64_t kStepValues = kStepPairs * kPairK;

/// Most rows of one task, in vectors: 4 tiles of 14 rows share what is fetched of the weights. With
/// 4096 features their 465 KB stay in the L2 of the thread beside two panels.
inline constexpr std::int64_t kBf16TaskRows = 56;
inline constexpr std::int64_t kMaxBf16TaskPanels = 32;

/// Rows in bf16: x[r, k] rounded is the element at values + r * stride + 2 k. Zero from the last k
/// to the end of its step; what follows up to the stride is unspecified, and nothing reads it.
struct Bf16Rows {
  std::byte* values;
  std::int64_t stride;  ///< bytes
};

/// Some rows to round, to nearest, ties to even; denormal numbers become zero.
struct RoundTask {
  const float* x;
  std::int64_t rows;
  std::int64_t cols;
  Bf16Rows out;
};

/// One block of rows times one group of neighbouring panels.
struct Bf16Task {
  Bf16Rows x;         ///< from the first row of the task
  std::int64_t rows;  ///< 1..Bf16Leaf::task_rows
  const std::byte* panels;
  std::int64_t num_panels;  ///< 1..kMaxBf16TaskPanels
  std::int64_t pairs;       ///< of k
  std::int64_t panel_bytes;
  const float* bias;      ///< [num_panels * kPanelColumns], zeros where there is none
  const float* residual;  ///< element of the first row and column, or null
  std::int64_t residual_stride;
  ops::Activation activation;
  float* out;  ///< element of the first row and column
  std::int64_t out_stride;
  std::int64_t columns;  ///< columns that exist; less than those of the panels at the right edge
};

struct Bf16Leaf {
  void (*round)(const RoundTask& task);
  void (*multiply)(const Bf16Task& task);
  std::int64_t tile_rows;  ///< rows that the micro-kernel computes at once
  std::int64_t task_rows;  ///< most rows of one task
  const char* name;
  bool multiplies_bf16 = false;  ///< has instructions for it, and is faster than float32
};

}  // namespace fovea::cpu
