// The tower of Phi-4-multimodal and its projector in the order of the data.
#include <algorithm>
#include <cmath>

#include "fovea/tower/ops/attention.h"
#include "fovea/tower/ops/cross_attention.h"
#include "fovea/tower/ops/linear.h"
#include "fovea/tower/ops/patch.h"
#include "fovea/tower/ops/rows.h"
#include "media/resize/resize_fine.h"
#include "models/phi4_multimodal/model.h"

namespace fovea::phi4_multimodal {

namespace {

/// Parts of the rows of qkv [rows, 3 width], `count` from `first` on, as [rows, count * width].
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

/// x += proj(attention(qkv(normed))): patches attend to the patches of their view, and so does the
/// padding of a view.
void add_attention(ExecContext& ctx, const Config& c, const common::Attention& w, const Inputs& in,
                   ConstTensorView normed, TensorView x) {
  const Arena::Scope scope(ctx.arena);
  const std::int64_t rows = x.shape[0];
  const std::int64_t width = c.tower.hidden_size;
  const float scale = 1.0f / std::sqrt(static_cast<float>(w.head_dim()));
  const TensorView qkv = ctx.arena.tensor(x.dtype, {rows, 3 * width});
  const TensorView mixed = ctx.arena.tensor(x.dtype, {rows, width});
  ops::linear(ctx, {.x = normed, .weight = w.qkv, .rows = in.rows, .out = qkv});
  ops::attention(ctx, {.qkv = qkv,
                       .sequences = {.cu_seqlens = in.cu_seqlens,
                                     .seqs = in.views,
                                     .max_seqlen = std::min(rows, c.tower.view.patches()),
                                     .rows = in.rows},
                       .num_heads = w.num_heads,
                       .head_dim = w.head_dim(),
                       .scale = scale,
                       .out = mixed,
                       .projection_dtype = w.qkv.dtype});
  // Without padding the live counts of these three are 0.
  const TensorView q = ctx.arena.tensor(x.dtype, {rows, width});
  const TensorView kv = ctx.arena.tensor(x.dtype, {rows, 2 * width});
  take_parts(ctx, qkv, 0, 1, in.padded_rows, q);
  take_parts(ctx, qkv, 1, 2, in.padded_rows, kv);
  ops::cross_attention(ctx, {.q = q,
                             .kv = kv,
                             .cu_queries = in.cu_padding,
                             .cu_keys = in.cu_seqlens,
                             .seqs = in.padded_views,
                             .num_heads = w.num_heads,
                             .head_dim = w.head_dim(),
                             .scale = scale,
                             .out = mixed});
  ops::linear(ctx, {.x = mixed, .weight = w.proj, .residual = x, .rows = in.rows, .out = x});
}

/// x = x + attention(LN1(x)); x = x + mlp(LN2(x))
void add_block(ExecContext& ctx, const Config& c, const common::Block& block, const Inputs& in,
               TensorView x) {
  const Arena::Scope scope(ctx.arena);
  const TensorView normed = ctx.arena.tensor(x.dtype, x.shape);
  common::norm(ctx, block.norm1, x, in.rows, normed);
  add_attention(ctx, c, block.attn, in, normed, x);
  common::norm(ctx, block.norm2, x, in.rows, normed);
  common::add_mlp(ctx, block.mlp, in.rows, normed, x);
}

}  // namespace

void forward(ExecContext& ctx, const Config& c, const Weights& w, const Inputs& in,
             TensorView out) {
  const std::int64_t width = c.tower.hidden_size;
  const std::int64_t rows = in.sources.shape[0];
  const Arena::Scope scope(ctx.arena);

  // x = conv(normalise(pixels)) + position embedding, [rows, hidden_size]
  const TensorView x = ctx.arena.tensor(out.dtype, {rows, width});
  common::embed_patches(ctx, w.patch_embedding,
                        {.pixels = in.pixels,
                         .sources = in.sources,
                         .patch_size = c.tower.view.patch_px,
                         .frames = static_cast<std::int64_t>(media::kLevelBytes),
                         .rows = in.rows},
                        x);
  ops::add_positions_half_pixel(ctx, {.table = w.position_embedding.view(),
                                      .positions = in.positions,
                                      .table_height = c.patches_side(),
                                      .table_width = c.patches_side(),
                                      .rows = in.rows,
                                      .x = x});
  for (const common::Block& block : w.blocks.blocks) add_block(ctx, c, block, in, x);

  // all = [separators; mean of the 2 x 2 patches of each token]
  constexpr std::int64_t kSeparators = 2;
  const std::int64_t tokens = rows / 4;
  const TensorView patches = ctx.arena.tensor(out.dtype, {rows, width});
  const TensorView all = ctx.arena.tensor(out.dtype, {kSeparators + tokens, width});
  ops::gather_rows(ctx, {.x = x, .index = in.pooled, .rows = in.rows, .out = patches});
  ops::mean_row_blocks(ctx, {.x = patches,
                             .block_rows = 4,
                             .blocks = in.tokens,
                             .out = row_range(all, kSeparators, tokens)});
  std::int64_t at = 0;
  for (const Tensor* separator : {&w.row_end, &w.between}) {
    ops::copy_row_blocks(ctx, {.x = separator->view(),
                               .x_block_rows = 0,
                               .count = 1,
                               .out = row_range(all, at++, 1),
                               .out_block_rows = 1});
  }

  // out = fc2(gelu(fc1(rows of all)))
  const TensorView joined = ctx.arena.tensor(out.dtype, {out.shape[0], width});
  const TensorView wide = ctx.arena.tensor(out.dtype, out.shape);
  ops::gather_rows(ctx, {.x = all, .index = in.out_rows, .rows = in.out, .out = joined});
  common::mlp(ctx, w.projector, in.out, joined, wide, out);
}

}  // namespace fovea::phi4_multimodal
