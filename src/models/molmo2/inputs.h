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
  common::ViewInputs views;
  /// [patches] i32: places in [patches as of images; patches of raw frames] of a chunk; or absent
  ConstTensorView scaled;
  ConstTensorView keys;        ///< [patches] i32: those of all tokens, one token after the other
  ConstTensorView cu_keys;     ///< [tokens + 1] i32: offsets of tokens in keys
  ConstTensorView cu_queries;  ///< [tokens + 1] i32: 0, 1, 2 ...
  LiveRows num_keys;
  LiveRows tokens;

  /// @param views of the graph.
  [[nodiscard]] static std::vector<BufferDecl> declare(const common::ViewLayout& layout,
                                                       const Processing& processing,
                                                       std::int64_t views, std::int64_t tokens);
  /// @throws as ViewInputs::fill.
  static void fill(const common::ViewLayout& layout, std::int64_t views, const Processor& processor,
                   std::span<const ItemPart> parts, InputWriter& writer);
  [[nodiscard]] static Inputs of(const common::ViewLayout& layout, const Processing& processing,
                                 std::int64_t views, const NamedTensors& in);
};

}  // namespace fovea::molmo2
