// InternViT and the projector in the order of the data.
#include "models/internvl/forward.h"

#include <cmath>

#include "ops/attention.h"
#include "ops/patch.h"
#include "ops/rows.h"

namespace fovea::internvl {

namespace {

/// Live counts of all views.
enum Stage : std::size_t { kViews, kPatches, kRows, kTokens };

/// x = [class embedding; conv(normalise(pixels))] + positions, [views * seq_rows, hidden_size]
void embed(ExecContext& ctx, const Config& c, const Weights& w, const blocks::ViewInputs& in,
           TensorView x) {
  const std::int64_t patches = c.view().patches();
  const std::int64_t num_patches = in.sources.shape[0];
  const Arena::Scope scope(ctx.arena);
  const TensorView values =
      ctx.arena.tensor(x.dtype, {num_patches, 3 * c.patch_size * c.patch_size});
  const TensorView embedded = ctx.arena.tensor(x.dtype, {num_patches, c.hidden_size});
  ops::patchify(ctx, {.pixels = in.pixels,
                      .sources = in.sources,
                      .table = w.normalize.view(),
                      .patch_size = c.patch_size,
                      .temporal_patch_size = 1,
                      .rows = in.live[kPatches],
                      .out = values});
  ops::linear(
      ctx, {.x = values, .weight = w.patch_embedding, .rows = in.live[kPatches], .out = embedded});
  ops::copy_row_blocks(ctx, {.x = w.class_embedding.view(),
                             .x_block_rows = 0,
                             .count = 1,
                             .blocks = in.live[kViews],
                             .out = x,
                             .out_block_rows = c.seq_rows()});
  ops::copy_row_blocks(ctx, {.x = embedded,
                             .x_block_rows = patches,
                             .count = patches,
                             .blocks = in.live[kViews],
                             .out = x,
                             .out_block_rows = c.seq_rows(),
                             .out_first = 1});
  ops::add_table(ctx, {.table = w.position_embedding.view(), .rows = in.live[kRows], .x = x});
}

void norm(ExecContext& ctx, const Norm& layer, ConstTensorView x, LiveRows rows, TensorView out) {
  std::visit([&](const auto& kind) { blocks::norm(ctx, kind, x, rows, out); }, layer);
}

/// Normalises the columns of q (part 0) or k (part 1) of qkv [rows, 3 hidden_size].
void norm_part(ExecContext& ctx, const blocks::RmsNorm& layer, LiveRows rows, std::int64_t part,
               TensorView qkv) {
  const Arena::Scope scope(ctx.arena);
  const std::int64_t width = qkv.shape[1] / 3;
  const TensorView parts = qkv.reshaped({3 * qkv.shape[0], width});  // q, k and v of every row
  const TensorView x = ctx.arena.tensor(qkv.dtype, {qkv.shape[0], width});
  ops::copy_row_blocks(ctx, {.x = parts,
                             .x_block_rows = 3,
                             .x_first = part,
                             .count = 1,
                             .blocks = rows,
                             .out = x,
                             .out_block_rows = 1});
  blocks::norm(ctx, layer, x, rows, x);
  ops::copy_row_blocks(ctx, {.x = x,
                             .x_block_rows = 1,
                             .count = 1,
                             .blocks = rows,
                             .out = parts,
                             .out_block_rows = 3,
                             .out_first = part});
}

/// x += proj(attention(norm(q), norm(k), v)); normed and x [rows, hidden_size]
void add_attention(ExecContext& ctx, const QkNormAttention& layer, const blocks::AttendedRows& rows,
                   ConstTensorView normed, TensorView x) {
  const blocks::Attention& attn = layer.attn;
  const Arena::Scope scope(ctx.arena);
  const TensorView qkv = ctx.arena.tensor(x.dtype, {x.shape[0], attn.qkv.out_features});
  const TensorView mixed = ctx.arena.tensor(x.dtype, x.shape);
  ops::linear(ctx, {.x = normed, .weight = attn.qkv, .rows = rows.live(), .out = qkv});
  norm_part(ctx, layer.q_norm, rows.live(), 0, qkv);
  norm_part(ctx, layer.k_norm, rows.live(), 1, qkv);
  ops::attention(ctx, {.qkv = qkv,
                       .sequences = rows.sequences,
                       .num_heads = attn.num_heads,
                       .head_dim = attn.head_dim(),
                       .scale = 1.0f / std::sqrt(static_cast<float>(attn.head_dim())),
                       .out = mixed});
  ops::linear(ctx, {.x = mixed, .weight = attn.proj, .residual = x, .rows = rows.live(), .out = x});
}

/// x = x + ls1 attention(norm1(x)); x = x + ls2 mlp(norm2(x)); x [rows, hidden_size]
void add_layer(ExecContext& ctx, const Layer& layer, const blocks::AttendedRows& rows,
               TensorView x) {
  const Arena::Scope scope(ctx.arena);
  const TensorView normed = ctx.arena.tensor(x.dtype, x.shape);
  norm(ctx, layer.norm1, x, rows.live(), normed);
  std::visit([&](const auto& attn) { add_attention(ctx, attn, rows, normed, x); }, layer.attn);
  norm(ctx, layer.norm2, x, rows.live(), normed);
  blocks::add_mlp(ctx, layer.mlp, rows.live(), normed, x);
}

}  // namespace

blocks::ViewLayout layout_of(const Config& c) {
  return {.view = c.view(),
          .seq_rows = c.seq_rows(),
          .stages = {1, c.view().patches(), c.seq_rows(), c.tokens_per_view()},
          .chunk_stages = {}};
}

void forward(ExecContext& ctx, const Config& c, const Weights& w, const blocks::ViewInputs& in,
             TensorView out) {
  const std::int64_t patches = c.view().patches();
  const std::int64_t views = in.sources.shape[0] / patches;
  const Arena::Scope scope(ctx.arena);
  const TensorView x = ctx.arena.tensor(out.dtype, {views * c.seq_rows(), c.hidden_size});
  embed(ctx, c, w, in, x);
  const blocks::AttendedRows rows{.sequences = {.cu_seqlens = in.cu_seqlens,
                                                .seqs = in.live[kViews],
                                                .max_seqlen = c.seq_rows(),
                                                .rows = in.live[kRows]}};
  for (const Layer& layer : w.layers) add_layer(ctx, layer, rows, x);

  // Without its class token a view is tokens of 2 x 2 neighbouring rows.
  const TensorView kept = ctx.arena.tensor(out.dtype, {views * patches, c.hidden_size});
  ops::copy_row_blocks(ctx, {.x = x,
                             .x_block_rows = c.seq_rows(),
                             .x_first = 1,
                             .count = patches,
                             .blocks = in.live[kViews],
                             .out = kept,
                             .out_block_rows = patches});

  // out = mlp(LN(join(x)))
  const TensorView joined = kept.reshaped({out.shape[0], c.joined_width()});
  const TensorView wide = ctx.arena.tensor(out.dtype, {out.shape[0], c.llm_hidden_size});
  blocks::norm(ctx, w.projector_norm, joined, in.live[kTokens], joined);
  blocks::mlp(ctx, w.projector, in.live[kTokens], joined, wide, out);
}

}  // namespace fovea::internvl
