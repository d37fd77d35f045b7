#pragma once

#include <limits>

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

struct GatedArgs {
  ConstTensorView x;  ///< [rows, 2 * cols], activation dtype: the gate, then what it gates
  Activation activation = Activation::kSilu;
  float limit = std::numeric_limits<float>::infinity();  ///< of the numbers of x, > 0
  LiveRows rows = {};
  TensorView out;  ///< [rows, cols], activation dtype, or quantized (input_rows); must not overlap
                   ///< x
};

/// out[r, c] = activation(min(x[r, c], limit)) * max(min(x[r, cols + c], limit), -limit)
/// In f32, one rounding, to the activation dtype or to E4M3. With the two halves from one GEMM this
/// is the wide layer of a gated MLP. Asynchronous on ctx.stream; safe to capture.
/// @throws Error(kInvalidArgument) if a shape or dtype does not match the list above.
/// Source: Shazeer, "GLU Variants Improve Transformer", arXiv:2002.05202.
FOVEA_API void gated(ExecContext& ctx, const GatedArgs& args);

struct ClampArgs {
  ConstTensorView x;      ///< [rows, cols], activation dtype
  ConstTensorView least;  ///< [cols] f32 on the device
  ConstTensorView most;   ///< [cols] f32 on the device, not below `least`
  LiveRows rows = {};
  TensorView out;  ///< [rows, cols], activation dtype; may be the same memory as x
};

/// out[r, c] = min(max(x[r, c], least[c]), most[c]), and NaN where x is; in f32, rounded to the
/// activation dtype. Asynchronous on ctx.stream; safe to capture.
/// @throws Error(kInvalidArgument) if a shape or dtype does not match the list above.
FOVEA_API void clamp(ExecContext& ctx, const ClampArgs& args);

}  // namespace fovea::ops
