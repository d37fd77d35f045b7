#pragma once

#include <cstdint>

#include "core/tensor_view.h"
#include "ops/context.h"

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
/// Source: specs of the Qwen family, "Rotary".
void rope_angles(ExecContext& ctx, const RopeAnglesArgs& args);

struct RopeArgs {
  TensorView
      qkv;  ///< [rows, 3 * num_heads * head_dim], activation dtype; q and k change, v does not
  ConstTensorView cos;  ///< [rows, head_dim / 2] f32
  ConstTensorView sin;  ///< [rows, head_dim / 2] f32
  std::int64_t num_heads;
  std::int64_t head_dim;
  LiveRows rows = {};
};

/// Rotates q and k of every head in place, halves paired (j with j + head_dim / 2):
///   y[j] = x[j] cos[j] - x[j + h] sin[j],  y[j + h] = x[j + h] cos[j] + x[j] sin[j],  h = head_dim
///   / 2
/// in f32, one rounding. Asynchronous on ctx.stream; safe to capture.
/// @throws Error(kInvalidArgument) if a shape or dtype does not match the list above.
void rope(ExecContext& ctx, const RopeArgs& args);

}  // namespace fovea::ops
