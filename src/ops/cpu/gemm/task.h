#pragma once

#include <cstddef>
#include <cstdint>

#include "fovea/tower/ops/linear.h"

// The seam between the half of the GEMM that is compiled once (packing, division into tasks) and
// its kernels, in the units of instruction sets: plain data and function pointers. Nothing here has
// an inline body, so the linker can never keep a copy that was compiled for another instruction
// set.
namespace fovea::cpu {

/// The format that a GEMM multiplies; gemm.h defines the results.
enum class GemmFormat { kF32, kBf16, kInt8 };

/// Columns of one panel of packed weights.
inline constexpr std::int64_t kPanelColumns = 32;
inline constexpr std::int64_t kHalfPanel = kPanelColumns / 2;
/// Bytes of a column that lie side by side in a row of a panel, and in a row of x: one value of k
/// in f32, two in bf16, four in int8. One instruction multiplies as many of every column.
inline constexpr std::int64_t kGroupBytes = 4;
inline constexpr std::int64_t kPanelRowBytes = kPanelColumns * kGroupBytes;
/// Rows of a panel that the widest instruction multiplies. In bf16 and int8 a panel has whole
/// steps.
inline constexpr std::int64_t kStepRows = 16;

inline constexpr std::int64_t kLineBytes = 64;

/// Most outliers of a row in int8. Few rows have any: a trained tower has some numbers far
/// larger than the others, and 256 steps up to them would leave hardly a step to the rest.
inline constexpr int kMaxOutliers = 8;

/// A number that does not fit 8 bits: its value is the nearest that does, `excess` the rest.
struct Outlier {
  std::int32_t k;
  std::int32_t excess;
};

/// The numbers that a kernel of int8 needs of a row besides its values: x[k] = offset + scale *
/// value[k], up to rounding, plus scale * excess for outliers; total is the sum of that over k.
struct Int8Row {
  float scale;
  float offset;
  float total;
  std::int32_t num_outliers;
  Outlier outliers[kMaxOutliers];
};

/// Some rows to bring into the format. Row r begins at values + r * stride. In bf16 the values from
/// the last k to the end of its step become zero; in int8 they are unspecified, and nothing depends
/// on them. What follows is not read.
struct PrepareTask {
  const float* x;
  std::int64_t rows;
  std::int64_t cols;
  std::byte* values;
  std::int64_t stride;  ///< bytes
  Int8Row* int8_rows;   ///< null in other formats
};

/// One block of rows times one group of neighbouring panels.
struct GemmTask {
  const std::byte* x;  ///< first row: f32 as they come, or values of a PrepareTask
  std::int64_t x_stride;
  const Int8Row* int8_rows;  ///< null in other formats
  std::int64_t rows;         ///< 1..TaskLimits::rows

  const std::byte* panels;  ///< first panel
  std::int64_t panel_bytes;
  std::int64_t row_bytes;   ///< kPanelRowBytes, or half of it: f32 with weights in bf16
  std::int64_t depth;       ///< rows of a panel
  std::int64_t num_panels;  ///< 1..TaskLimits::panels

  const float* bias;          ///< [num_panels * kPanelColumns], zeros where there is none
  const float* int8_columns;  ///< scales of columns, int8_stride on their middles, then the sums of
                              ///< their integers; null in other formats
  std::int64_t int8_stride;
  const float* residual;  ///< element of the first row and column, or null
  std::int64_t residual_stride;
  ops::Activation activation;
  float* out;  ///< element of the first row and column
  std::int64_t out_stride;
  std::int64_t columns;  ///< that exist; less than those of the panels at the right edge
  std::byte* scratch;    ///< GemmKernel::scratch_bytes, aligned to 64, of the thread
};

/// The bounds of a task.
struct TaskLimits {
  std::int64_t tile_rows;  ///< rows that the micro-kernel computes at once
  std::int64_t rows;       ///< most rows of a task
  std::int64_t panels;     ///< most panels of a task
};

struct GemmKernel {
  const char* name;  ///< of its unit
  GemmFormat format;
  void (*prepare)(const PrepareTask& task);  ///< null in f32
  void (*multiply)(const GemmTask& task);
  TaskLimits limits;
  std::int64_t scratch_bytes = 0;
  bool is_fast = false;  ///< in bf16: has instructions for it, and is faster than f32
};

}  // namespace fovea::cpu
