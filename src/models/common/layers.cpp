// Layers in terms of ops.
#include "models/common/layers.h"

#include <cmath>
#include <utility>

#include "fovea/tower/ops/activate.h"
#include "fovea/tower/ops/attention.h"
#include "fovea/tower/ops/grid.h"
#include "fovea/tower/ops/linear.h"
#include "fovea/tower/ops/norm.h"
#include "fovea/tower/ops/patch.h"
#include "fovea/tower/ops/rows.h"

namespace fovea::common {

void embed_patches(ExecContext& ctx, const PatchEmbedding& embedding, const PatchBytes& patches,
                   TensorView x) {
  const Arena::Scope scope(ctx.arena);
  const TensorView values = ctx.arena.tensor(x.dtype, {x.shape[0], embedding.proj.in_features});
  ops::patchify(ctx, {.pixels = patches.pixels,
                      .sources = patches.sources,
                      .table = embedding.normalize.view(),
                      .patch_size = patches.patch_size,
                      .temporal_patch_size = patches.frames,
                      .rows = patches.rows,
                      .out = values});
  ops::linear(ctx, {.x = values, .weight = embedding.proj, .rows = patches.rows, .out = x});
}

void norm(ExecContext& ctx, const LayerNorm& layer, ConstTensorView x, LiveRows rows,
          TensorView out, ConstTensorView residual) {
  ops::layer_norm(ctx, {.x = x,
                        .weight = layer.weight.view(),
                        .bias = layer.bias.view(),
                        .epsilon = layer.epsilon,
                        .rows = rows,
                        .out = out,
                        .residual = residual});
}

void norm(ExecContext& ctx, const RmsNorm& layer, ConstTensorView x, LiveRows rows, TensorView out,
          ConstTensorView residual) {
  ops::rms_norm(ctx, {.x = x,
                      .weight = layer.weight.view(),
                      .epsilon = layer.epsilon,
                      .rows = rows,
                      .out = out,
                      .residual = residual});
}

void attend(ExecContext& ctx, const Attention& layer, const AttendedRows& rows, ConstTensorView x,
            ConstTensorView residual, TensorView out) {
  const Arena::Scope scope(ctx.arena);
  const TensorView qkv = ctx.arena.tensor(out.dtype, {x.shape[0], layer.qkv.out_features});
  const ConstTensorView like{nullptr, out.dtype, {x.shape[0], layer.proj.in_features}};
  const TensorView mixed = ops::input_rows(ctx, layer.proj, like);
  ops::projected_attention(ctx, {.x = x,
                                 .projection = layer.qkv,
                                 .qkv = qkv,
                                 .cos = rows.cos,
                                 .sin = rows.sin,
                                 .sequences = rows.sequences,
                                 .num_heads = layer.num_heads,
                                 .head_dim = layer.head_dim(),
                                 .scale = 1.0f / std::sqrt(static_cast<float>(layer.head_dim())),
                                 .out = mixed,
                                 .norms = {.q = layer.q_norm.weight.view(),
                                           .k = layer.k_norm.weight.view(),
                                           .epsilon = layer.q_norm.epsilon}});
  ops::linear(
      ctx,
      {.x = mixed, .weight = layer.proj, .residual = residual, .rows = rows.live(), .out = out});
}

void mix(ExecContext& ctx, const Attention& layer, const ops::Sequences& sequences, TensorView qkv,
         TensorView mixed) {
  ops::attention(ctx, {.qkv = qkv,
                       .sequences = sequences,
                       .num_heads = layer.num_heads,
                       .head_dim = layer.head_dim(),
                       .scale = 1.0f / std::sqrt(static_cast<float>(layer.head_dim())),
                       .out = mixed,
                       .projection_dtype = layer.qkv.dtype});
}

void add_attention(ExecContext& ctx, const Attention& layer, const AttendedRows& rows,
                   ConstTensorView normed, TensorView x) {
  attend(ctx, layer, rows, normed, x, x);
}

void add_mlp(ExecContext& ctx, const Mlp& layer, LiveRows rows, ConstTensorView normed,
             TensorView x) {
  const Arena::Scope scope(ctx.arena);
  const TensorView wide = ctx.arena.tensor(x.dtype, {x.shape[0], layer.fc1.out_features});
  ops::mlp(ctx, {.x = normed,
                 .fc1 = layer.fc1,
                 .fc2 = layer.fc2,
                 .activation = layer.activation,
                 .residual = x,
                 .rows = rows,
                 .wide = wide,
                 .out = x});
}

void add_mlp(ExecContext& ctx, const GatedMlp& layer, LiveRows rows, ConstTensorView normed,
             TensorView x) {
  mlp(ctx, layer, rows, normed, x, x);
}

void take_parts(ExecContext& ctx, TensorView qkv, std::int64_t first, std::int64_t count,
                LiveRows rows, TensorView out) {
  const std::int64_t width = qkv.shape[1] / 3;
  ops::copy_row_blocks(ctx, {.x = qkv.reshaped({3 * qkv.shape[0], width}),
                             .x_block_rows = 3,
                             .x_first = first,
                             .count = count,
                             .blocks = rows,
                             .out = out.reshaped({count * out.shape[0], width}),
                             .out_block_rows = count});
}

void add_blocks(ExecContext& ctx, const BlockSequence& sequence, const AttendedRows& rows,
                TensorView x, std::span<const std::int64_t> taps, const OnTap& on_tap) {
  const Arena::Scope scope(ctx.arena);
  if (const auto levels = ops::add_blocks(ctx, {.blocks = sequence.prepared,
                                                .cos = rows.cos,
                                                .sin = rows.sin,
                                                .sequences = rows.sequences,
                                                .x = x,
                                                .taps = taps})) {
    for (std::size_t i = 0; i < taps.size(); ++i) on_tap(i, (*levels)[i]);
    return;
  }
  std::size_t passed = 0;  // taps
  for (std::size_t i = 0; i < sequence.blocks.size(); ++i) {
    add_block(ctx, sequence.blocks[i], rows, x);
    if (passed < taps.size() && std::cmp_equal(taps[passed], i)) on_tap(passed++, x);
  }
}

void conv3x3(ExecContext& ctx, const Conv3x3& layer, ConstTensorView x, std::int64_t side,
             LiveRows rows, TensorView out) {
  const Arena::Scope scope(ctx.arena);
  const TensorView columns = ctx.arena.tensor(out.dtype, {out.shape[0], 9 * x.shape[1]});
  ops::im2col_3x3(ctx, {.x = x,
                        .height = side,
                        .width = side,
                        .stride = layer.stride,
                        .rows = rows,
                        .out = columns});
  ops::linear(ctx, {.x = columns, .weight = layer.weight, .rows = rows, .out = out});
}

void mlp(ExecContext& ctx, const Mlp& layer, LiveRows rows, ConstTensorView x, TensorView wide,
         TensorView out, std::int64_t column) {
  ops::mlp(ctx, {.x = x,
                 .fc1 = layer.fc1,
                 .fc2 = layer.fc2,
                 .activation = layer.activation,
                 .rows = rows,
                 .wide = wide,
                 .out = out,
                 .out_column = column});
}

void mlp(ExecContext& ctx, const GatedMlp& layer, LiveRows rows, ConstTensorView x, TensorView out,
         ConstTensorView residual) {
  const Arena::Scope scope(ctx.arena);
  const std::int64_t count = out.shape[0];
  const ConstTensorView like{nullptr, out.dtype, {count, layer.down.in_features}};
  const TensorView wide = ops::input_rows(ctx, layer.down, like);
  const TensorView gate_up = ctx.arena.tensor(out.dtype, {count, layer.gate_up.out_features});
  ops::linear(ctx, {.x = x, .weight = layer.gate_up, .rows = rows, .out = gate_up});
  ops::gated(ctx, {.x = gate_up,
                   .activation = layer.activation,
                   .limit = layer.limit,
                   .rows = rows,
                   .out = wide});
  ops::linear(ctx,
              {.x = wide, .weight = layer.down, .residual = residual, .rows = rows, .out = out});
}

}  // namespace fovea::common
