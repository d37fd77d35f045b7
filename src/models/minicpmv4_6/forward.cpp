// The tower of MiniCPM-V 4.6 and its projector in the order of the data.
#include "fovea/tower/ops/linear.h"
#include "fovea/tower/ops/patch.h"
#include "fovea/tower/ops/rows.h"
#include "models/common/grid/inputs.h"
#include "models/minicpmv4_6/model.h"

namespace fovea::minicpmv4_6 {

namespace {

/// x = x + attention(LN1(x)) in windows; merged = mean of a window + mlp(LN(join(x))).
/// @param x [windows * kArea, hidden_size], changed. @param merged [windows, hidden_size].
void merge_windows(ExecContext& ctx, const WindowMerger& w, const common::GridInputs& in,
                   const WindowInputs& windows, TensorView x, TensorView merged) {
  const Arena::Scope scope(ctx.arena);
  const common::AttendedRows rows{.sequences = {.cu_seqlens = windows.cu_windows,
                                                .seqs = windows.windows,
                                                .max_seqlen = Config::kArea,
                                                .rows = in.patches}};
  common::add_normed_attention(ctx, w.layer_norm1, w.self_attn, rows, x);
  const TensorView mean = ctx.arena.tensor(x.dtype, merged.shape);
  ops::mean_row_blocks(
      ctx, {.x = x, .block_rows = Config::kArea, .blocks = windows.windows, .out = mean});

  const TensorView joined = x.reshaped({merged.shape[0], w.mlp.fc1.in_features});
  const TensorView wide = ctx.arena.tensor(x.dtype, {merged.shape[0], w.mlp.fc1.out_features});
  common::norm(ctx, w.pre_norm, joined, windows.windows, joined);
  ops::mlp(ctx, {.x = joined,
                 .fc1 = w.mlp.fc1,
                 .fc2 = w.mlp.fc2,
                 .activation = w.mlp.activation,
                 .residual = mean,
                 .rows = windows.windows,
                 .wide = wide,
                 .out = merged});
}

}  // namespace

void forward(ExecContext& ctx, const Config& c, const Weights& w, const common::GridInputs& in,
             const WindowInputs& windows, TensorView out) {
  const std::int64_t tokens = out.shape[0];
  const std::int64_t rows = tokens * Config::kArea;
  const std::int64_t patches = rows * Config::kArea;
  const std::int64_t width = c.tower.hidden_size;
  const Arena::Scope scope(ctx.arena);

  // x = conv2d(normalise(pixels)) + table[nearest place], [patches, hidden_size]
  const TensorView x = ctx.arena.tensor(out.dtype, {patches, width});
  common::embed_patches(ctx, c.grid, w.patch_embedding, in, x);
  ops::add_positions_half_pixel(ctx, {.table = w.position_embedding.view(),
                                      .positions = in.positions,
                                      .table_height = c.tower.view.grid(),
                                      .table_width = c.tower.view.grid(),
                                      .rows = in.patches,
                                      .x = x});

  // x = x + attention(LN1(x)); x = x + mlp(LN2(x)); each view attends to itself
  common::add_blocks(ctx, w.blocks,
                     {.sequences = {.cu_seqlens = in.cu_seqlens,
                                    .seqs = in.seqs,
                                    .max_seqlen = patches,
                                    .rows = in.patches}},
                     x);

  // y = one row of every window, [rows, hidden_size], through the other blocks
  const TensorView y = ctx.arena.tensor(out.dtype, {rows, width});
  merge_windows(ctx, w.vit_merger, in, windows, x, y);
  common::add_blocks(ctx, w.later_blocks,
                     {.sequences = {.cu_seqlens = windows.cu_merged,
                                    .seqs = in.seqs,
                                    .max_seqlen = rows,
                                    .rows = windows.windows}},
                     y);

  // out = merger(LN(join(LN_post(y))))
  common::norm(ctx, w.post_layernorm, y, windows.windows, y);
  const TensorView joined = y.reshaped({tokens, Config::kArea * width});
  const TensorView wide = ctx.arena.tensor(out.dtype, joined.shape);
  common::norm(ctx, w.pre_norm, joined, in.tokens, joined);
  common::mlp(ctx, w.merger, in.tokens, joined, wide, out);
}

}  // namespace fovea::minicpmv4_6
