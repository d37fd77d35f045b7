#pragma once

#include <span>
#include <vector>

#include "fovea/tower/models/encoder_graph_model.h"
#include "fovea/tower/ops/context.h"
#include "models/common/geometry.h"
#include "models/common/grid/inputs.h"

namespace fovea::common {

/// The inputs of a tower over chunks of frames beside GridInputs: the time of a patch, and the
/// patches that become one.
struct ChunkInputs {
  ConstTensorView times;  ///< [patches, 4] i32: 0, row of MoonVitWeights::times, 1, rows of it
  ConstTensorView means;  ///< [tokens * merge_area, 4] i32: the patches of one place in all frames
                          ///< of a chunk, as MeanRowBlocksArgs::runs
  LiveRows places;        ///< live rows of `means`

  /// The buffers of a graph of `capacity`, for EncoderGraphModel::inputs.
  [[nodiscard]] static std::vector<BufferDecl> declare(const GridGeometry& geometry,
                                                       const GraphCapacity& capacity);
  /// Writes all of them, for EncoderGraphModel::fill_inputs.
  /// @param time_rows of MoonVitWeights::times. @param runs of runs_of, one per chunk.
  /// @throws Error(kUnavailable) if a buffer holds less.
  static void fill(std::int64_t time_rows, std::span<const GridRun> runs, InputWriter& writer);
  /// The buffers on the device, for a forward.
  [[nodiscard]] static ChunkInputs of(const NamedTensors& in);
};

}  // namespace fovea::common
