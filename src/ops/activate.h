#pragma once

#include "core/tensor_view.h"
#include "ops/context.h"
#include "ops/linear.h"

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
void activate(ExecContext& ctx, const ActivateArgs& args);

}  // namespace fovea::ops
