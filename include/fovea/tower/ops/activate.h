#pragma once

#include "fovea/export.h"
#include "fovea/tower/core/tensor_view.h"
#include "fovea/tower/ops/context.h"
#include "fovea/tower/ops/linear.h"

namespace fovea::ops {

struct ActivateArgs {
  Activation activation;
  LiveRows rows = {};
  TensorView x;  ///< [rows, cols], activation dtype, updated in place
};

/// x[r, c] = activation(x[r, c]), in f32, one rounding: an activation that follows no GEMM.
/// Asynchronous on ctx.stream; safe to capture.
/// @throws Error(kInvalidArgument) if a shape or dtype does not match the list above.
/// Source: the formulas of Activation (ops/linear.h).
FOVEA_API void activate(ExecContext& ctx, const ActivateArgs& args);

}  // namespace fovea::ops
