#pragma once

#include "fovea/tower/ops/context.h"
#include "models/common/grid/inputs.h"
#include "models/qwen2_5_vl/config.h"
#include "models/qwen2_5_vl/weights.h"
#include "models/qwen2_5_vl/windows.h"

namespace fovea::qwen2_5_vl {

/// The tower: bytes in, rows out. Asynchronous on ctx.stream; safe to capture.
/// @param in with rows in the order of windows.
/// @param out [tokens, out_hidden_size], in the order of the items.
/// Source: docs/reference/qwen2_5_vl.md, "Forward".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::GridInputs& in, const WindowInputs& windows, TensorView out);

}  // namespace fovea::qwen2_5_vl
