#pragma once

#include "fovea/export.h"
#include "fovea/tower/core/tensor_view.h"
#include "fovea/tower/ops/context.h"

namespace fovea::ops {

struct LayerNormArgs {
  ConstTensorView x;       ///< [rows, cols], activation dtype
  ConstTensorView weight;  ///< [cols], f32, on the device
  ConstTensorView bias;    ///< [cols], f32, on the device
  float epsilon;           ///< added to the variance, > 0
  LiveRows rows = {};
  /// [rows, cols], activation dtype; may be the same memory as x. Or quantized
  /// (src/ops/quantized.h), apart from x and without a residual.
  TensorView out;
  ConstTensorView residual = {};  ///< [rows, cols], activation dtype, or absent; may be the same
                                  ///< memory as out
};

/// Normalises every row to mean 0 and variance 1, then scales and shifts it:
///   out[r, c] = residual[r, c] + (x[r, c] - mean_r) / sqrt(var_r + epsilon) * weight[c] + bias[c]
/// var_r is the biased variance, computed from the centred row. All arithmetic in f32, one
/// rounding. Asynchronous on ctx.stream; safe to capture.
/// @throws Error(kInvalidArgument) if a shape or dtype does not match the list above.
/// Source: torch.nn.LayerNorm over the last axis (PyTorch 2.11).
FOVEA_API void layer_norm(ExecContext& ctx, const LayerNormArgs& args);

struct RmsNormArgs {
  ConstTensorView x;       ///< [rows, cols], activation dtype
  ConstTensorView weight;  ///< [cols], f32, on the device
  float epsilon;           ///< added to the mean square, > 0
  LiveRows rows = {};
  TensorView out;                 ///< as in LayerNormArgs
  ConstTensorView residual = {};  ///< as in LayerNormArgs
};

/// out[r, c] = residual[r, c] + round(x[r, c] / sqrt(mean_c(x[r, c]^2) + epsilon)) * weight[c]
/// Statistics in f32; the normalised value is rounded to the activation dtype before it is
/// multiplied by the weight, and once more at the end. Asynchronous on ctx.stream; safe to capture.
/// @throws Error(kInvalidArgument) if a shape or dtype does not match the list above.
/// Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", arXiv:1910.07467; the
/// rounding is that of huggingface/transformers 5.17, Qwen2RMSNorm.
FOVEA_API void rms_norm(ExecContext& ctx, const RmsNormArgs& args);

}  // namespace fovea::ops
