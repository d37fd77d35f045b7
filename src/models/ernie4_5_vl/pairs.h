#pragma once

#include <span>
#include <vector>

#include "fovea/tower/models/encoder_graph_model.h"
#include "fovea/tower/ops/context.h"
#include "models/common/grid/inputs.h"
#include "models/ernie4_5_vl/config.h"

namespace fovea::ernie4_5_vl {

/// The inputs of a tower that joins two frames, beside GridInputs.
struct PairInputs {
  ConstTensorView pairs;  ///< [2 * tokens] i32: the row of each token in its first and second frame
  LiveRows joined;        ///< rows of one frame each: patches joined in space
  LiveRows halves;        ///< live rows of `pairs`

  // As common::PlainGridModel says. A run is a temporal patch; a single frame is its own second.
  [[nodiscard]] static std::vector<BufferDecl> declare(const Config& config,
                                                       const GraphCapacity& capacity);
  /// @throws Error(kUnavailable) if a buffer holds less.
  static void fill(const Config& config, std::span<const common::GridRun> runs,
                   const common::PatchTables& rows, InputWriter& writer);
  [[nodiscard]] static PairInputs of(const NamedTensors& in);
};

}  // namespace fovea::ernie4_5_vl
