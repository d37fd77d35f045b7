#pragma once

#include <cstdint>

#include "fovea/tower/ops/context.h"
#include "models/common/views/inputs.h"
#include "models/llama4/config.h"
#include "models/llama4/weights.h"

namespace fovea::llama4 {

/// What the forward reads, but for the positions. Its further stage is that of tokens.
[[nodiscard]] common::ViewLayout layout_of(const Config& config);

/// The place of every row in its tile for the rotary embedding: patches count from 1, the class
/// token, which comes last, is at 0 and does not turn.
/// @param positions host, [tiles * rows of a tile, 4].
void write_positions(const common::SquareView& view, std::int64_t tiles, std::int32_t* positions);

/// The tower: bytes of tiles in, rows out. Asynchronous on ctx.stream; safe to capture.
/// @param in of layout_of(config). @param positions [rows of all tiles, 4] i32: see
/// ops::RopeAnglesArgs. @param out [tiles * tokens, text_hidden_size].
/// Source: docs/reference/llama4.md, "Forward".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::ViewBatch& in, ConstTensorView positions, TensorView out);

}  // namespace fovea::llama4
