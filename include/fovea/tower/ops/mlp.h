#pragma once

#include <cstdint>

#include "fovea/export.h"
#include "fovea/tower/ops/linear.h"

namespace fovea::ops {

struct MlpArgs {
  ConstTensorView x;              ///< [rows, fc1.in_features], activation dtype or quantized
  const PackedLinear& fc1;        ///< must outlive recorded work
  const PackedLinear& fc2;        ///< from as many features as fc1 has; must outlive recorded work
  Activation activation;          ///< between the two
  ConstTensorView residual = {};  ///< [rows, fc2.out_features], activation dtype, or absent; may be
                                  ///< `out`
  LiveRows rows = {};
  TensorView wide;  ///< [rows, fc1.out_features], activation dtype: memory to work in, no overlap
                    ///< with the others; what it holds afterwards is unspecified
  TensorView out;   ///< activation dtype; [rows, fc2.out_features], or wider, see out_column
  std::int64_t out_column = 0;  ///< first column of `out` written
};

/// out = residual + fc2(activation(fc1(x))), as one op so that a backend can hand quantized rows
/// from one GEMM to the next. Otherwise two linear layers, rounded after each.
/// Asynchronous on ctx.stream; safe to capture.
/// @throws Error as linear.
FOVEA_API void mlp(ExecContext& ctx, const MlpArgs& args);

}  // namespace fovea::ops
