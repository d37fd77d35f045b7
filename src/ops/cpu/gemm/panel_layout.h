#pragma once

#include "fovea/tower/core/dtype.h"
#include "ops/cpu/gemm/task.h"
#include "ops/cpu/rowwise/row_loop.h"

namespace fovea::cpu {

/// The layout of packed weights in memory: ceil(out_features / 32) panels, one after the other. A
/// row of a panel holds `group` values of k of 32 columns; those of a column lie side by side.
/// Zeros stand where k or a column does not exist.
///
///   f32   group 1
///   bf16  group 1, for rows in f32: word j of a row holds column j in its lower half and column
///         j + 16 in its upper one, so that one shift and one mask widen 16 words to 32 floats
///   bf16  group 2, whole steps of 32
///   int8  group 4, whole steps of 64
struct PanelLayout {
  std::int64_t element_bytes;
  std::int64_t group;
  std::int64_t step;  ///< values of k: a panel has whole ones

  /// @param dtype of the weights, kF32 or kBF16 where the format is kF32.
  [[nodiscard]] static PanelLayout of(GemmFormat format, DType dtype) {
    switch (format) {
      case GemmFormat::kBf16: return {2, 2, 2 * kStepRows};
      case GemmFormat::kInt8: return {1, 4, 4 * kStepRows};
      case GemmFormat::kF32: break;
    }
    return {static_cast<std::int64_t>(size_of(dtype)), 1, 1};
  }

  [[nodiscard]] std::int64_t row_bytes() const { return kPanelColumns * group * element_bytes; }
  [[nodiscard]] std::int64_t panel_bytes(std::int64_t in_features) const {
    return ceil_div(in_features, step) * (step / group) * row_bytes();
  }
  /// Rows of a panel to multiply. In int8 whole steps: what lies behind the last k is zero.
  [[nodiscard]] std::int64_t depth(std::int64_t in_features) const {
    return element_bytes == 1 ? ceil_div(in_features, step) * (step / group)
                              : ceil_div(in_features, group);
  }
};

}  // namespace fovea::cpu
