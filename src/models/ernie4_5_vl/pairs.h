#pragma once

#include <span>
#include <vector>

#include "fovea/tower/models/encoder_graph_model.h"
#include "fovea/tower/ops/context.h"
#include "models/common/geometry.h"
#include "models/common/grid/inputs.h"

namespace fovea::ernie4_5_vl {

/// The inputs of a tower that joins two frames, beside GridInputs.
struct PairInputs {
  ConstTensorView pairs;  ///< [2 * tokens] i32: the row of each token in its first and second frame
  LiveRows joined;        ///< rows of one frame each: patches joined in space
  LiveRows halves;        ///< live rows of `pairs`

  /// The buffers of a graph of `capacity`, for EncoderGraphModel::inputs.
  [[nodiscard]] static std::vector<BufferDecl> declare(const GraphCapacity& capacity);
  /// Writes all of them, for EncoderGraphModel::fill_inputs.
  /// @param runs of common::runs_of, one per temporal patch. A single frame is its own second.
  /// @throws Error(kUnavailable) if a buffer holds less.
  static void fill(const common::GridGeometry& geometry, std::span<const common::GridRun> runs,
                   InputWriter& writer);
  /// The buffers on the device, for a forward.
  [[nodiscard]] static PairInputs of(const NamedTensors& in);
};

}  // namespace fovea::ernie4_5_vl
