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

  // As common::PlainGridModel says. A run is a view.
  [[nodiscard]] static std::vector<BufferDecl> declare(const Config& config,
                                                       const GraphCapacity& capacity);
  /// Puts `rows` in the order of the tower, too: window by window of a token, patch by patch of a
  /// window. Places become those in the table of positions: that of a patch is the entry
  /// floor(i side / n) of each axis.
  static void fill(const Config& config, std::span<const common::GridRun> runs,
                   const common::PatchTables& rows, InputWriter& writer);
  [[nodiscard]] static WindowInputs of(const NamedTensors& in);
};

}  // namespace fovea::minicpmv4_6
