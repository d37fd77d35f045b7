// MoonViT and the projector of Kimi-VL and Kimi-K2.5 in the order of the data.
#include "fovea/tower/ops/patch.h"
#include "fovea/tower/ops/rows.h"
#include "models/common/grid/inputs.h"
#include "models/kimi_vl/model.h"

namespace fovea::kimi_vl {

namespace {

/// x = x + sinusoids of the frames of chunks. The table is a grid of one row, which no position of
/// its own size interpolates.
void add_times(ExecContext& ctx, const Weights& w, const common::GridInputs& in,
               const ChunkInputs& chunks, TensorView x) {
  ops::add_positions_half_pixel(ctx, {.table = w.times.view(),
                                      .positions = chunks.times,
                                      .table_height = 1,
                                      .table_width = w.times.shape[0],
                                      .rows = in.patches,
                                      .x = x});
}

/// Mean over the frames of each chunk, [tokens * merge_area, hidden_size].
TensorView mean_frames(ExecContext& ctx, const Config& c, const ChunkInputs& chunks,
                       ConstTensorView x) {
  const TensorView mean = ctx.arena.tensor(x.dtype, {chunks.means.shape[0], x.shape[1]});
  ops::mean_row_blocks(ctx, {.x = x,
                             .block_rows = c.grid.temporal_patch_size,
                             .blocks = chunks.places,
                             .out = mean,
                             .runs = chunks.means});
  return mean;
}

}  // namespace

void forward(ExecContext& ctx, const Config& c, const Weights& w, const common::GridInputs& in,
             const std::optional<ChunkInputs>& chunks, TensorView out) {
  const std::int64_t patches = in.positions.shape[0];
  const Shape joined_shape{out.shape[0], c.joined_width()};
  const Arena::Scope scope(ctx.arena);

  // x = conv2d(normalise(pixels)) + interpolated position embedding, [patches, hidden_size]
  const TensorView x = ctx.arena.tensor(out.dtype, {patches, c.hidden_size});
  common::embed_patches(ctx, c.grid, w.patch_embed, in, x);
  ops::add_positions_bicubic(ctx, {.table = w.pos_emb.view(),
                                   .positions = in.positions,
                                   .table_height = c.init_pos_emb_height,
                                   .table_width = c.init_pos_emb_width,
                                   .rows = in.patches,
                                   .x = x});
  if (chunks) add_times(ctx, w, in, *chunks, x);
  const common::AttendedRows rows = common::rotated_rows(ctx, in, w.inv_freq, patches);

  // x = x + attention(LN(x)); x = x + mlp(LN(x))
  common::add_blocks(ctx, w.blocks, rows, x);

  // out = projector(join(LN_pre(LN_final(x)))), in between the mean over the frames of a chunk
  const TensorView normed = ctx.arena.tensor(out.dtype, x.shape);
  common::norm(ctx, w.final_layernorm, x, in.patches, normed);
  const TensorView places = chunks ? mean_frames(ctx, c, *chunks, normed) : normed;
  const TensorView wide = ctx.arena.tensor(out.dtype, joined_shape);
  common::norm(ctx, w.pre_norm, places, chunks ? chunks->places : in.patches, places);
  common::mlp(ctx, w.projector, in.tokens, places.reshaped(joined_shape), wide, out);
}

}  // namespace fovea::kimi_vl
