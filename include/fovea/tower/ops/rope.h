#pragma once

#include <cstdint>

#include "fovea/export.h"
#include "fovea/tower/core/tensor_view.h"
#include "fovea/tower/ops/context.h"

namespace fovea::ops {

struct RopeAnglesArgs {
  ConstTensorView
      positions;  ///< [rows, 4] i32: y, x, height, width in patches (the last two unused)
  ConstTensorView inv_freq;  ///< [head_dim / 4] f32
  LiveRows rows = {};
  TensorView cos;  ///< [rows, head_dim / 2] f32
  TensorView sin;  ///< [rows, head_dim / 2] f32
};

/// Angles of the two-dimensional rotary embedding, row part first:
///   angle[r, j] = y_r * inv_freq[j]  for j < head_dim / 4,  x_r * inv_freq[j - head_dim / 4] after
/// The product is rounded to f32 before cosine and sine are taken. Once per forward. Asynchronous
/// on ctx.stream; safe to capture.
/// @throws Error(kInvalidArgument) if a shape or dtype does not match the list above.
/// Source: docs/reference/qwen_glm.md, "Rotary positions".
FOVEA_API void rope_angles(ExecContext& ctx, const RopeAnglesArgs& args);

}  // namespace fovea::ops
