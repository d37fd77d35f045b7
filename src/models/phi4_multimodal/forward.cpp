// The tower of Phi-4-multimodal and its projector in the order of the data.
#include <algorithm>
#include <cmath>

#include "fovea/tower/ops/cross_attention.h"
#include "fovea/tower/ops/linear.h"
#include "fovea/tower/ops/patch.h"
#include "fovea/tower/ops/rows.h"
#include "models/common/views/token_grid.h"
#include "models/phi4_multimodal/model.h"

namespace fovea::phi4_multimodal {

/// x += proj(attention(qkv(normed))): patches attend to the patches of their view, and so does the
/// padding of a view. It is not in an unnamed namespace: common::add_block finds it by the rows.
static void add_attention(ExecContext& ctx, const common::Attention& w, const Inputs& in,
                          ConstTensorView normed, TensorView x) {
  const Arena::Scope scope(ctx.arena);
  const std::int64_t rows = x.shape[0];
  const std::int64_t width = x.shape[1];
  const TensorView qkv = ctx.arena.tensor(x.dtype, {rows, 3 * width});
  const TensorView mixed = ctx.arena.tensor(x.dtype, {rows, width});
  ops::linear(ctx, {.x = normed, .weight = w.qkv, .rows = in.live(), .out = qkv});
  common::mix(ctx, w,
              {.cu_seqlens = in.grid.cu_seqlens,
               .seqs = in.grid.seqs,
               .max_seqlen = std::min(rows, in.view_patches),
               .rows = in.live()},
              qkv, mixed);
  // Padding is a sequence of its own, too, whose result this one replaces.
  const TensorView q = ctx.arena.tensor(x.dtype, {rows, width});
  const TensorView kv = ctx.arena.tensor(x.dtype, {rows, 2 * width});
  common::take_parts(ctx, qkv, 0, 1, in.padded_rows, q);
  common::take_parts(ctx, qkv, 1, 2, in.padded_rows, kv);
  ops::cross_attention(ctx, {.q = q,
                             .kv = kv,
                             .cu_queries = in.cu_padding,
                             .cu_keys = in.grid.cu_seqlens,
                             .seqs = in.grid.seqs,
                             .num_heads = w.num_heads,
                             .head_dim = w.head_dim(),
                             .scale = 1.0f / std::sqrt(static_cast<float>(w.head_dim())),
                             .out = mixed});
  ops::linear(ctx, {.x = mixed, .weight = w.proj, .residual = x, .rows = in.live(), .out = x});
}

void forward(ExecContext& ctx, const Config& c, const Weights& w, const Inputs& in,
             TensorView out) {
  const common::SquareView& view = c.tower.view;
  const std::int64_t width = c.tower.hidden_size;
  const Arena::Scope scope(ctx.arena);

  // x = conv(normalise(pixels)) + position embedding, [rows, hidden_size]
  const TensorView x = ctx.arena.tensor(out.dtype, {in.grid.positions.shape[0], width});
  common::embed_patches(ctx, grid_of(view), w.tower.patch_embedding, in.grid, x);
  ops::add_positions_half_pixel(ctx, {.table = w.tower.position_embedding.view(),
                                      .positions = in.grid.positions,
                                      .table_height = view.grid(),
                                      .table_width = view.grid(),
                                      .rows = in.grid.patches,
                                      .x = x});
  // x = x + attention(LN1(x)); x = x + mlp(LN2(x))
  for (const common::Block& block : w.tower.blocks.blocks) common::add_block(ctx, block, in, x);

  // joined = the mean of the 2 x 2 patches of each token, and separators, [tokens, hidden_size]
  const std::int64_t pooled = in.pooled.shape[0];
  const TensorView all = ctx.arena.tensor(out.dtype, {Inputs::kSeparators + pooled, width});
  const TensorView joined = ctx.arena.tensor(out.dtype, {out.shape[0], width});
  common::put_row(ctx, w.row_end, row_range(all, 0, 1));
  common::put_row(ctx, w.between, row_range(all, 1, 1));
  ops::gather_rows(ctx, {.x = x,
                         .index = in.pooled,
                         .rows = in.pooled_rows,
                         .out = row_range(all, Inputs::kSeparators, pooled)});
  ops::mean_row_blocks(
      ctx, {.x = all, .block_rows = 4, .blocks = in.out, .out = joined, .runs = in.means});

  // out = fc2(gelu(fc1(joined)))
  const TensorView wide = ctx.arena.tensor(out.dtype, out.shape);
  common::mlp(ctx, w.projector, in.out, joined, wide, out);
}

}  // namespace fovea::phi4_multimodal
