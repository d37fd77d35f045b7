#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "fovea/tower/models/encoder_graph_model.h"
#include "models/phi4_multimodal/processor.h"

namespace fovea::phi4_multimodal {

/// The inputs of the tower. Rows are the patches that tokens are made of: first those of the image,
/// view after view, then padding that shares a token with them. Padding attends to the patches of
/// its view, and nothing attends to padding.
struct Inputs {
  ConstTensorView pixels;      ///< [bytes] u8
  ConstTensorView sources;     ///< [rows, 4] i32: see ops::PatchifyArgs
  ConstTensorView positions;   ///< [rows, 4] i32: y, x, height, width in the table of positions
  ConstTensorView cu_seqlens;  ///< [views + 1] i32: of the patches of the image
  ConstTensorView cu_padding;  ///< [views + 1] i32: of padding, counted from the first row
  ConstTensorView pooled;      ///< [rows] i32: four rows for each token
  ConstTensorView out_rows;    ///< [tokens] i32: separators 0 and 1, then tokens
  LiveRows rows;
  LiveRows views;
  LiveRows padded_rows;   ///< rows, or 0 where there is no padding
  LiveRows padded_views;  ///< views, or 0 where there is no padding
  LiveRows tokens;        ///< without separators
  LiveRows out;           ///< with separators

  /// @param tokens of the graph, separators included.
  [[nodiscard]] static std::vector<BufferDecl> declare(const common::SquareView& view,
                                                       std::int64_t tokens);
  /// @throws Error(kUnavailable) if a buffer holds less, Error(kInvalidArgument) for more pixels
  /// than 32-bit offsets reach.
  static void fill(const Processing& processing, std::span<const ItemPart> parts,
                   InputWriter& writer);
  [[nodiscard]] static Inputs of(const NamedTensors& in);
};

/// Place in a table of `side` positions of patch `index` of `count`, as the reference finds it: in
/// f32, index / count among multiples of 1 / side. Source: docs/reference/phi4_multimodal.md,
/// "Positions".
[[nodiscard]] std::int64_t position_of(std::int64_t index, std::int64_t count, std::int64_t side);

}  // namespace fovea::phi4_multimodal
