#pragma once

#include "fovea/tower/ops/context.h"
#include "models/common/grid/inputs.h"
#include "models/glm4v/config.h"
#include "models/glm4v/weights.h"

namespace fovea::glm4v {

/// The tower: bytes in, rows out. Asynchronous on ctx.stream; safe to capture.
/// @param out [tokens, out_hidden_size]. Source: docs/reference/glm4v.md, "Forward".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::GridInputs& in, TensorView out);

}  // namespace fovea::glm4v
