#pragma once

#include "models/deepseek_ocr/config.h"
#include "models/deepseek_ocr/weights.h"
#include "ops/context.h"

namespace fovea::deepseek_ocr {

/// What the forward of a path reads, and how many of its rows are live. SAM runs on chunks of
/// views, because its activations are large.
[[nodiscard]] blocks::ViewLayout layout_of(const View& view);

/// One path of the encoder: the view that it takes, and the position tables that fit it.
struct Tower {
  const Config& config;
  const Weights& weights;
  const View& view;
  Path path;
};

/// Bytes of square views in, projected tokens out. Asynchronous on ctx.stream; safe to capture.
/// @param in of layout_of(tower.view).
/// @param out global path: [views * tokens_side * (tokens_side + 1), n_embed], a newline row after
/// every row of the token grid; local path: [views * tokens, n_embed].
/// Source: docs/reference/deepseek_ocr.md, "Forward".
void forward(ExecContext& ctx, const Tower& tower, const blocks::ViewInputs& in, TensorView out);

}  // namespace fovea::deepseek_ocr
