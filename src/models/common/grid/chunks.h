#pragma once

#include <span>
#include <vector>

#include "fovea/tower/models/encoder_graph_model.h"
#include "fovea/tower/ops/context.h"
#include "models/common/grid/inputs.h"

namespace fovea::common {

struct MoonVitConfig;

/// The inputs of a tower over chunks of frames beside GridInputs: the time of a patch, and the
/// patches that become one.
struct ChunkInputs {
  ConstTensorView times;  ///< [patches, 4] i32: 0, row of MoonVitWeights::times, 1, rows of it
  ConstTensorView means;  ///< [tokens * merge_area, 4] i32: the patches of one place in all frames
                          ///< of a chunk, as MeanRowBlocksArgs::runs
  LiveRows places;        ///< live rows of `means`

  // As PlainGridModel says. A run is a chunk.
  [[nodiscard]] static std::vector<BufferDecl> declare(const MoonVitConfig& config,
                                                       const GraphCapacity& capacity);
  /// @throws Error(kUnavailable) if a buffer holds less.
  static void fill(const MoonVitConfig& config, std::span<const GridRun> runs,
                   const PatchTables& rows, InputWriter& writer);
  [[nodiscard]] static ChunkInputs of(const NamedTensors& in);
};

}  // namespace fovea::common
