#pragma once

#include <cstddef>
#include <cstdint>

#include "fovea/tower/ops/linear.h"
#include "ops/cpu/linear/task.h"

// The seam between the portable half of the int8 linear layer (packing, tasks) and its leaves, one
// per instruction set: plain data and function pointers, as in ops/cpu/linear/task.h.
namespace fovea::cpu {

/// Values of k that one instruction multiplies: they lie side by side in rows and in weights.
inline constexpr std::int64_t kGroupK = 4;
/// Values of k that the widest instruction multiplies: a panel has whole steps.
inline constexpr std::int64_t kStepK = 64;
inline constexpr std::int64_t kStepGroups = kStepK / kGroupK;
/// Bytes of the weights of one group: 32 columns, kGroupK values each. A panel of packed weights is
/// [groups][kPanelColumns][kGroupK], groups = kStepGroups ceil(in_features / kStepK), zeros where k
/// or a column does not exist.
inline constexpr std::int64_t kGroupBytes = kPanelColumns * kGroupK;
/// Sums of so many products of [0, 255] and [-127, 127] stay below 2^31.
inline constexpr std::int64_t kMaxInt8Features = 65536;

/// Most rows of one task, in vectors: 8 tiles of 14 rows share what is fetched of the weights. With
/// 4096 features their 455 KB stay in the L2 of the thread beside two panels.
inline constexpr std::int64_t kInt8TaskRows = 112;
inline constexpr std::int64_t kMaxInt8TaskPanels = 32;

/// Most wide numbers of a row. Few rows have any: a trained tower has some numbers far larger than
/// the others, and 256 steps up to them would leave hardly a step to the rest.
inline constexpr int kMaxWide = 8;
/// Rows with so many numbers may have wide ones: enough that 8 are few, and not too many for sums
/// of 32 bits, 16384 * 255 * 127 + kMaxWide * kMaxWideSteps * 127 < 2^31.
inline constexpr std::int64_t kFewestWideFeatures = 256;
inline constexpr std::int64_t kMostWideFeatures = 16384;
/// Either end of the range of a row is halved so often at most, so no number is more steps from its
/// end.
inline constexpr int kMaxHalvings = 11;
inline constexpr std::int64_t kMaxWideSteps = 255 << kMaxHalvings;

/// A number that does not fit 8 bits: what its value in `values` lacks.
struct WideNumber {
  std::int32_t k;
  std::int32_t excess;
};

/// The wide numbers of a row.
struct WideNumbers {
  std::int32_t count;
  WideNumber numbers[kMaxWide];
};

/// Quantized rows: x[r, k] = offset[r] + scale[r] * values[r * stride + k], up to rounding, plus
/// scale[r] * excess for wide numbers; total[r] is the sum of that over k. What lies between the
/// last k and the end of its step of kStepK is unspecified, and nothing depends on it.
struct Int8Rows {
  std::uint8_t* values;
  std::int64_t stride;  ///< bytes
  float* scale;
  float* offset;
  float* total;
  WideNumbers* wide;
};

/// Some rows to quantize.
struct QuantizeTask {
  const float* x;
  std::int64_t rows;
  std::int64_t cols;
  Int8Rows out;
};

/// What an int8 layer multiplies rows by, from its first panel on.
struct Int8Weights {
  const std::byte* panels;
  std::int64_t groups;  ///< of k, in a panel
  const float* scale;   ///< of a column
  const float* middle;  ///< of the weights of a column
  const float* sum;     ///< of the integers of a column
  const float* bias;    ///< zeros where there is none
};

/// One block of rows times one group of neighbouring panels.
struct Int8Task {
  Int8Rows x;         ///< from the first row of the task
  std::int64_t rows;  ///< 1..Int8Leaf::task_rows
  Int8Weights weights;
  std::int64_t num_panels;  ///< 1..kMaxInt8TaskPanels
  const float* residual;    ///< element of the first row and column, or null
  std::int64_t residual_stride;
  ops::Activation activation;
  float* out;  ///< element of the first row and column
  std::int64_t out_stride;
  std::int64_t columns;  ///< columns that exist; less than those of the panels at the right edge
};

struct Int8Leaf {
  void (*quantize)(const QuantizeTask& task);
  void (*multiply)(const Int8Task& task);
  std::int64_t tile_rows;  ///< rows that the micro-kernel computes at once
  std::int64_t task_rows;  ///< most rows of one task
  const char* name;
};

}  // namespace fovea::cpu
