#pragma once

#include "fovea/tower/ops/context.h"
#include "models/common/views/inputs.h"
#include "models/step3_vl/config.h"
#include "models/step3_vl/weights.h"

namespace fovea::step3_vl {

/// What the forward of a path reads. The tower runs on chunks of views, because its activations are
/// large.
[[nodiscard]] common::ViewLayout layout_of(const common::SquareView& view);

/// Level bytes of a chunk of square views in, rows out. Asynchronous on ctx.stream; safe to
/// capture. @param path whose positions fit the views. @param in of layout_of(kViews[path]).
/// @param out [views * tokens, text_hidden_size].
/// Source: docs/reference/step3_vl.md, "Forward".
void forward(ExecContext& ctx, const Weights& weights, Path path, const common::ViewBatch& in,
             TensorView out);

}  // namespace fovea::step3_vl
