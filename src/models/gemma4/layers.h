#pragma once

#include <cstdint>

#include "fovea/tower/device/device.h"
#include "fovea/tower/ops/context.h"
#include "fovea/tower/ops/linear.h"
#include "models/common/clipped.h"
#include "models/common/layers.h"

namespace fovea::gemma4 {

/// A block with norms before and after its two parts.
struct Block {
  common::RmsNorm input_layernorm;
  common::RmsNorm post_attention_layernorm;
  common::RmsNorm pre_feedforward_layernorm;
  common::RmsNorm post_feedforward_layernorm;
  common::ClippedLinears qkv;      ///< hidden_size -> q | k | v, heads contiguous in each
  common::ClippedLinears o_proj;   ///< heads * head_dim -> hidden_size
  Tensor q_norm;                   ///< [head_dim] f32
  Tensor k_norm;                   ///< [head_dim] f32
  common::ClippedLinears gate_up;  ///< hidden_size -> gate | up
  common::ClippedLinears down_proj;
  ops::Activation activation = ops::Activation::kGeluTanh;
  std::int64_t num_heads = 1;
};

/// The following submits to ctx.stream, returns at once and is safe to capture.
/// x += post_attention(o_proj(attention(qkv(input(x))))),
/// x += post_feedforward(down(activation(gate(y)) * up(y))), y = pre_feedforward(x).
/// @param ones [head_dim] f32, the weights of the norm of v. @param x [rows, hidden_size].
void add_block(ExecContext& ctx, const Block& block, const common::AttendedRows& rows,
               const Tensor& ones, TensorView x);

}  // namespace fovea::gemma4
