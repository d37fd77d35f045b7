#pragma once

#include "fovea/tower/ops/context.h"
#include "models/common/grid/inputs.h"
#include "models/qwen3_vl/config.h"
#include "models/qwen3_vl/weights.h"

namespace fovea::qwen3_vl {

/// The tower: bytes in, rows out. Asynchronous on ctx.stream and ctx.side; safe to capture.
/// @param out [tokens, out_width]: main embedding, then the deepstack levels, side by side.
/// Source: docs/reference/qwen_glm.md, "Forward of Qwen3-VL".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::GridInputs& in, TensorView out);

}  // namespace fovea::qwen3_vl
