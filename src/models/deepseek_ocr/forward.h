#pragma once

#include "fovea/tower/ops/context.h"
#include "models/common/views/inputs.h"
#include "models/deepseek_ocr/config.h"
#include "models/deepseek_ocr/weights.h"

namespace fovea::deepseek_ocr {

/// What the forward of a path reads. SAM runs on chunks of views, because its activations are
/// large; the sequences are those of CLIP, whose patches are SAM's features.
[[nodiscard]] common::ViewLayout layout_of(const common::SquareView& view, Path path);

/// One path of the encoder, whose position tables fit its views.
struct Tower {
  const Config& config;
  const Weights& weights;
  Path path;
};

/// Bytes of square views in, projected tokens out. Asynchronous on ctx.stream; safe to capture.
/// @param in of layout_of() of the path.
/// @param out global path: [views * tokens_side * (tokens_side + 1), n_embed], a newline row after
/// every row of the token grid; local path: [views * tokens, n_embed].
/// Source: docs/reference/deepseek_ocr.md, "Forward".
void forward(ExecContext& ctx, const Tower& tower, const common::ViewInputs& in, TensorView out);

}  // namespace fovea::deepseek_ocr
