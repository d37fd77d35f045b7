#pragma once

#include <span>
#include <vector>

#include "fovea/tower/models/encoder_graph_model.h"
#include "fovea/tower/ops/attention.h"
#include "models/common/grid/inputs.h"
#include "models/minicpmv4_6/config.h"

namespace fovea::minicpmv4_6 {

/// The inputs besides patches: windows, and views once every window is one row.
struct WindowInputs {
  ConstTensorView cu_windows;  ///< [windows + 1] i32: rows of windows, kArea each
  ConstTensorView cu_merged;   ///< [views + 1] i32: rows of views whose windows are merged
  LiveRows windows;

  [[nodiscard]] static std::vector<BufferDecl> declare(const GraphCapacity& capacity,
                                                       std::int64_t views);
  /// Writes them, and puts `rows` in the order of the tower: window by window of a token, patch by
  /// patch of a window. Places become those in the table of positions, whose side is
  /// `table_side`: that of a patch is the entry floor(i side / n) of each axis.
  /// @param views in the order of their rows.
  static void fill(std::int64_t table_side, std::span<const common::GridRun> views,
                   const common::PatchTables& rows, InputWriter& writer);
  [[nodiscard]] static WindowInputs of(const NamedTensors& in);
};

}  // namespace fovea::minicpmv4_6
