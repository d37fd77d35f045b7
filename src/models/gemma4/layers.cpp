// A block of Gemma 4 in terms of ops.
#include "models/gemma4/layers.h"

#include "fovea/tower/ops/activate.h"
#include "fovea/tower/ops/projected_attention.h"

namespace fovea::gemma4 {

namespace {

/// x += norm(layer(y)); y [rows, layer.in_features].
void add_projected(ExecContext& ctx, const common::ClippedLinears& layer,
                   const common::RmsNorm& norm, ConstTensorView y, LiveRows rows, TensorView x) {
  const TensorView projected = ctx.arena.tensor(x.dtype, x.shape);
  common::project(ctx, layer, y, rows, projected);
  common::norm(ctx, norm, projected, rows, x, x);
}

void add_attention(ExecContext& ctx, const Block& block, const common::AttendedRows& rows,
                   const Tensor& ones, TensorView x) {
  const Arena::Scope scope(ctx.arena);
  const std::int64_t head_dim = block.q_norm.shape[0];
  const Shape width{x.shape[0], block.num_heads * head_dim};

  // q, k, v = clip(linear(clip(RMS(x)))), [rows, 3 * num_heads * head_dim]
  const TensorView normed = common::input_rows(ctx, block.qkv, x);
  const TensorView qkv = ctx.arena.tensor(x.dtype, {x.shape[0], 3 * width[1]});
  common::norm(ctx, block.input_layernorm, x, rows.live(), normed);
  common::project(ctx, block.qkv, normed, rows.live(), qkv);

  // mixed = softmax(rotate(RMS(q)) rotate(RMS(k))^T) RMS(v), without a scale
  const TensorView mixed = ctx.arena.tensor(x.dtype, width);
  ops::head_attention(ctx, {.qkv = qkv,
                            .cos = rows.cos,
                            .sin = rows.sin,
                            .sequences = rows.sequences,
                            .num_heads = block.num_heads,
                            .head_dim = head_dim,
                            .scale = 1.0f,
                            .out = mixed,
                            .norms = {.q = block.q_norm.view(),
                                      .k = block.k_norm.view(),
                                      .v = ones.view(),
                                      .epsilon = block.input_layernorm.epsilon},
                            .projection_dtype = block.qkv.parts.front().layer.dtype});

  // x = x + RMS(o_proj(mixed))
  add_projected(ctx, block.o_proj, block.post_attention_layernorm, mixed, rows.live(), x);
}

void add_mlp(ExecContext& ctx, const Block& block, LiveRows rows, TensorView x) {
  const Arena::Scope scope(ctx.arena);
  const std::int64_t wide = block.down_proj.in_features();

  // gate, up = clip(linear(clip(RMS(x)))), [rows, 2 * wide]
  const TensorView normed = common::input_rows(ctx, block.gate_up, x);
  const TensorView gate_up = ctx.arena.tensor(x.dtype, {x.shape[0], 2 * wide});
  common::norm(ctx, block.pre_feedforward_layernorm, x, rows, normed);
  common::project(ctx, block.gate_up, normed, rows, gate_up);

  // x = x + RMS(down(activation(gate) * up))
  const TensorView gated = ctx.arena.tensor(x.dtype, {x.shape[0], wide});
  ops::gated(ctx, {.x = gate_up, .activation = block.activation, .rows = rows, .out = gated});
  add_projected(ctx, block.down_proj, block.post_feedforward_layernorm, gated, rows, x);
}

}  // namespace

void add_block(ExecContext& ctx, const Block& block, const common::AttendedRows& rows,
               const Tensor& ones, TensorView x) {
  add_attention(ctx, block, rows, ones, x);
  add_mlp(ctx, block, rows.live(), x);
}

}  // namespace fovea::gemma4
