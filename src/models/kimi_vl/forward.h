#pragma once

#include "fovea/tower/ops/context.h"
#include "models/common/grid/inputs.h"
#include "models/kimi_vl/config.h"
#include "models/kimi_vl/weights.h"

namespace fovea::kimi_vl {

/// The tower: bytes in, rows out. Asynchronous on ctx.stream; safe to capture.
/// @param out [tokens, text_hidden_size]. Source: docs/reference/kimi_vl.md, "Forward".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::GridInputs& in, TensorView out);

}  // namespace fovea::kimi_vl
