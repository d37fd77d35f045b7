#pragma once

#include "fovea/tower/ops/context.h"
#include "models/common/grid/inputs.h"
#include "models/qwen2_vl/config.h"
#include "models/qwen2_vl/weights.h"

namespace fovea::qwen2_vl {

/// The tower: bytes in, rows out. Asynchronous on ctx.stream; safe to capture.
/// @param out [tokens, hidden_size]. Source: docs/reference/qwen2_vl.md, "Forward".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::GridInputs& in, TensorView out);

}  // namespace fovea::qwen2_vl
