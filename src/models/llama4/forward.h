#pragma once

#include <vector>

#include "models/llama4/config.h"
#include "models/llama4/weights.h"
#include "ops/context.h"

namespace fovea::llama4 {

/// What the tower reads: tiles, and the place of every row in its tile for the rotary embedding.
struct Inputs {
  blocks::ViewInputs views;
  ConstTensorView positions;  ///< [tiles * seq_rows, 4] i32: see ops::RopeAnglesArgs

  /// The buffers of a graph of `tiles` tiles, for EncoderGraphModel::inputs.
  [[nodiscard]] static std::vector<BufferDecl> declare(const Config& config, std::int64_t tiles);
  /// Writes all of them but the pixels; parameters and errors are those of ViewInputs::fill.
  [[nodiscard]] static std::byte* fill(const Config& config, std::int64_t capacity,
                                       std::int64_t tiles, std::size_t num_items,
                                       InputWriter& writer);
  /// The buffers on the device, for a forward. @param tiles of the graph.
  [[nodiscard]] static Inputs of(const Config& config, std::int64_t tiles, const NamedTensors& in);
};

/// The tower: bytes of tiles in, rows out. Asynchronous on ctx.stream; safe to capture.
/// @param out [tiles * tokens, text_hidden_size]. Source: docs/reference/llama4.md, "Forward".
void forward(ExecContext& ctx, const Config& config, const Weights& weights, const Inputs& in,
             TensorView out);

}  // namespace fovea::llama4
