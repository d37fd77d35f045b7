#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fovea/tower/models/encoder_graph_model.h"
#include "models/common/grid/inputs.h"
#include "models/nemotron_h_omni/processor.h"

namespace fovea::nemotron_h_omni {

/// The inputs of the tower: those of a grid, whose positions are places in the square of the longer
/// side, and which rows are class tokens or patches. Sequences of videos come first.
struct Inputs {
  common::GridInputs grid;  ///< its cu_seqlens count patches alone
  ConstTensorView second;   ///< [patches, 4] i32: as grid.sources, of the second frame of a pair
  ConstTensorView
      embedding;  ///< [rows of sequences] i32: places in [class rows; as images; as videos]
  ConstTensorView patch_rows;  ///< [patches] i32: rows of sequences, in the order of items
  ConstTensorView cu_seqlens;  ///< [sequences + 1] i32, class rows included
  LiveRows rows;               ///< of the sequences
  LiveRows of_videos;          ///< patches

  [[nodiscard]] static std::vector<BufferDecl> declare(const Processor& processor,
                                                       const GraphCapacity& capacity);
  /// @throws as GridInputs::fill.
  static void fill(const Processor& processor, const GraphCapacity& capacity,
                   std::span<const ItemPart> parts, InputWriter& writer);
  [[nodiscard]] static Inputs of(const Processor& processor, const GraphCapacity& capacity,
                                 const NamedTensors& in);
};

}  // namespace fovea::nemotron_h_omni
