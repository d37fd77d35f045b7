#pragma once

#include "models/step3_vl/config.h"
#include "models/step3_vl/weights.h"
#include "ops/context.h"

namespace fovea::step3_vl {

/// What the forward of a path reads, and how many of its rows are live. The tower runs on chunks of
/// views, because its activations are large.
[[nodiscard]] blocks::ViewLayout layout_of(const View& view);

/// One path of the encoder: the view that it takes, and the positions that fit it.
struct Tower {
  const Config& config;
  const Weights& weights;
  const View& view;
  Path path;
};

/// Level bytes of square views in, rows out. Asynchronous on ctx.stream; safe to capture.
/// @param in of layout_of(tower.view). @param out [views * tokens, text_hidden_size].
/// Source: docs/reference/step3_vl.md, "Forward".
void forward(ExecContext& ctx, const Tower& tower, const blocks::ViewInputs& in, TensorView out);

}  // namespace fovea::step3_vl
