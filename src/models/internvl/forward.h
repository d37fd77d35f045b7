#pragma once

#include "fovea/tower/ops/context.h"
#include "models/common/views/inputs.h"
#include "models/internvl/config.h"
#include "models/internvl/weights.h"

namespace fovea::internvl {

/// What the forward reads. Its further stage is that of tokens.
[[nodiscard]] common::ViewLayout layout_of(const Config& config);

/// Bytes of square views in, projected tokens out. Asynchronous on ctx.stream; safe to capture.
/// @param in of layout_of(config).
/// @param out [views * tokens, llm_hidden_size].
/// Source: docs/reference/internvl.md, "Forward".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::ViewBatch& in, TensorView out);

}  // namespace fovea::internvl
