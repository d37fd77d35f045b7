#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fovea/tower/models/encoder_graph_model.h"
#include "models/common/grid/inputs.h"
#include "models/phi4_multimodal/processor.h"

namespace fovea::phi4_multimodal {

/// The inputs of the tower. Rows are the patches that tokens are made of: first those of the image,
/// view after view, then one for each view with padding, patches that share tokens with them.
/// Padding attends to the patches of its view, and nothing attends to padding.
struct Inputs {
  static constexpr std::int64_t kSeparators = 2;

  common::GridInputs grid;     ///< one sequence per view, row by row of it, then one per padding.
                               ///< Positions are places in the table
  ConstTensorView cu_padding;  ///< [sequences + 1] i32: of the padding of views, from row 0
  ConstTensorView pooled;      ///< [4 * tokens] i32: four rows for each token
  ConstTensorView means;       ///< [tokens, 4] i32: as MeanRowBlocksArgs::runs, in the separators,
                               ///< then `pooled`
  std::int64_t view_patches = 0;  ///< most of a view
  LiveRows padded_rows;           ///< rows, or 0 where there is no padding
  LiveRows pooled_rows;           ///< patches of tokens
  LiveRows out;                   ///< tokens and separators

  /// The rows of blocks, for common::add_block.
  [[nodiscard]] LiveRows live() const { return grid.patches; }

  /// @param capacity whose tokens are rows of the output, separators included.
  [[nodiscard]] static std::vector<BufferDecl> declare(const Processor& processor,
                                                       const GraphCapacity& capacity);
  /// @throws as GridInputs::fill.
  static void fill(const Processor& processor, const GraphCapacity& capacity,
                   std::span<const ItemPart> parts, InputWriter& writer);
  [[nodiscard]] static Inputs of(const Processor& processor, const GraphCapacity& capacity,
                                 const NamedTensors& in);
};

/// Place in a table of `side` positions of patch `index` of `count`, as the reference finds it: in
/// f32, index / count among multiples of 1 / side. Source: docs/reference/phi4_multimodal.md,
/// "Positions".
[[nodiscard]] std::int64_t position_of(std::int64_t index, std::int64_t count, std::int64_t side);

}  // namespace fovea::phi4_multimodal
