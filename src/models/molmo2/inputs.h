#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fovea/tower/models/encoder_graph_model.h"
#include "models/common/views/inputs.h"
#include "models/molmo2/processor.h"

namespace fovea::molmo2 {

/// The inputs of the tower over views, and which of their patches become which token.
struct Inputs {
  common::ViewInputs views;    ///< those of images, then frames
  ConstTensorView scaled;      ///< [views] i32: patches of a chunk that begins with this view whose
                               ///< values are those of images, where frames have others
  ConstTensorView keys;        ///< [patches] i32: those of all tokens, one token after the other
  ConstTensorView cu_keys;     ///< [tokens + 1] i32: offsets of tokens in keys
  ConstTensorView cu_queries;  ///< [tokens + 1] i32: 0, 1, 2 ...
  ConstTensorView means;       ///< [tokens, 4] i32: as MeanRowBlocksArgs::runs, those of cu_keys
  std::int64_t most_keys = 0;  ///< of a token
  LiveRows num_keys;
  LiveRows tokens;

  [[nodiscard]] static std::vector<BufferDecl> declare(const Processor& processor,
                                                       const GraphCapacity& capacity);
  /// @throws as ViewInputs::fill.
  static void fill(const Processor& processor, const GraphCapacity& capacity,
                   std::span<const ItemPart> parts, InputWriter& writer);
  [[nodiscard]] static Inputs of(const Processor& processor, const GraphCapacity& capacity,
                                 const NamedTensors& in);
};

}  // namespace fovea::molmo2
