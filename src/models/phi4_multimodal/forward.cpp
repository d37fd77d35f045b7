// The tower of Phi-4-multimodal and its projector in the order of the data.
#include <algorithm>
#include <cmath>

#include "fovea/tower/ops/attention.h"
#include "fovea/tower/ops/cross_attention.h"
#include "fovea/tower/ops/linear.h"
#include "fovea/tower/ops/patch.h"
#include "fovea/tower/ops/rows.h"
#include "models/common/views/token_grid.h"
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

/// The rows of common::add_block.
struct ViewRows {
  const Inputs& in;
  std::int64_t view_patches = 0;

  [[nodiscard]] LiveRows live() const { return in.grid.patches; }
};

/// x += proj(attention(qkv(normed))): patches attend to the patches of their view, and so does the
/// padding of a view.
void add_attention(ExecContext& ctx, const common::Attention& w, const ViewRows& of,
                   ConstTensorView normed, TensorView x) {
  const Arena::Scope scope(ctx.arena);
  const Inputs& in = of.in;
  const std::int64_t rows = x.shape[0];
  const std::int64_t width = x.shape[1];
  const float scale = 1.0f / std::sqrt(static_cast<float>(w.head_dim()));
  const TensorView qkv = ctx.arena.tensor(x.dtype, {rows, 3 * width});
  const TensorView mixed = ctx.arena.tensor(x.dtype, {rows, width});
  ops::linear(ctx, {.x = normed, .weight = w.qkv, .rows = of.live(), .out = qkv});
  ops::attention(ctx, {.qkv = qkv,
                       .sequences = {.cu_seqlens = in.grid.cu_seqlens,
                                     .seqs = in.views,
                                     .max_seqlen = std::min(rows, of.view_patches),
                                     .rows = of.live()},
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
                             .cu_keys = in.grid.cu_seqlens,
                             .seqs = in.padded_views,
                             .num_heads = w.num_heads,
                             .head_dim = w.head_dim(),
                             .scale = scale,
                             .out = mixed});
  ops::linear(ctx, {.x = mixed, .weight = w.proj, .residual = x, .rows = of.live(), .out = x});
}

}  // namespace

void forward(ExecContext& ctx, const Config& c, const Weights& w, const Inputs& in,
             TensorView out) {
  const common::SquareView& view = c.tower.view;
  const std::int64_t width = c.tower.hidden_size;
  const std::int64_t rows = in.grid.positions.shape[0];
  const Arena::Scope scope(ctx.arena);

  // x = conv(normalise(pixels)) + position embedding, [rows, hidden_size]
  const TensorView x = ctx.arena.tensor(out.dtype, {rows, width});
  common::embed_patches(ctx, w.patch_embedding,
                        {.pixels = in.grid.pixels,
                         .sources = in.grid.sources,
                         .patch_size = view.patch_px,
                         .frames = view.planes,
                         .rows = in.grid.patches},
                        x);
  ops::add_positions_half_pixel(ctx, {.table = w.position_embedding.view(),
                                      .positions = in.grid.positions,
                                      .table_height = view.grid(),
                                      .table_width = view.grid(),
                                      .rows = in.grid.patches,
                                      .x = x});
  // x = x + attention(LN1(x)); x = x + mlp(LN2(x))
  const ViewRows of{.in = in, .view_patches = view.patches()};
  for (const common::Block& block : w.blocks.blocks) common::add_block(ctx, block, of, x);

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
