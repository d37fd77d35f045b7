// MoonViT and its projector in the order of the data.
#include "models/common/grid/moonvit.h"
#include "core/check.h"
#include "fovea/tower/ops/patch.h"
#include "fovea/tower/ops/rows.h"
#include "models/common/grid/inputs.h"

namespace fovea::common {

namespace {

/// x = x + sinusoids of the frames of chunks. The table is a grid of one row, which no position of
/// its own size interpolates.
void add_times(ExecContext& ctx, const MoonVitWeights& w, const GridInputs& in,
               const ChunkInputs& chunks, TensorView x) {
  ops::add_positions_half_pixel(ctx, {.table = w.times.view(),
                                      .positions = chunks.times,
                                      .table_height = 1,
                                      .table_width = w.times.shape[0],
                                      .rows = in.patches,
                                      .x = x});
}

/// Mean over the frames of each chunk, [tokens * merge_area, hidden_size].
TensorView mean_frames(ExecContext& ctx, const MoonVitConfig& c, const ChunkInputs& chunks,
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

void run_moonvit(ExecContext& ctx, const MoonVitConfig& c, const MoonVitWeights& w,
                 const GridInputs& in, const std::optional<ChunkInputs>& chunks, TensorView out) {
  const std::int64_t patches = in.positions.shape[0];
  const Shape joined_shape{out.shape[0], c.joined_width()};
  const Arena::Scope scope(ctx.arena);

  // x = conv2d(normalise(pixels)) + interpolated position embedding, [patches, hidden_size]
  const TensorView x = ctx.arena.tensor(out.dtype, {patches, c.hidden_size});
  embed_patches(ctx, c.grid, w.patch_embed, in, x);
  ops::add_positions_bicubic(ctx, {.table = w.pos_emb.view(),
                                   .positions = in.positions,
                                   .table_height = c.init_pos_emb_height,
                                   .table_width = c.init_pos_emb_width,
                                   .rows = in.patches,
                                   .x = x});
  if (chunks) add_times(ctx, w, in, *chunks, x);
  const AttendedRows rows = rotated_rows(ctx, in, w.inv_freq, patches);

  // x = x + attention(LN(x)); x = x + mlp(LN(x))
  add_blocks(ctx, w.blocks, rows, x);

  // out = projector(join(LN_pre(LN_final(x)))), in between the mean over the frames of a chunk
  const TensorView normed = ctx.arena.tensor(out.dtype, x.shape);
  norm(ctx, w.final_layernorm, x, in.patches, normed);
  const TensorView places = chunks ? mean_frames(ctx, c, *chunks, normed) : normed;
  const TensorView wide = ctx.arena.tensor(out.dtype, joined_shape);
  norm(ctx, w.pre_norm, places, chunks ? chunks->places : in.patches, places);
  mlp(ctx, w.projector, in.tokens, places.reshaped(joined_shape), wide, out);
}

GridTower moonvit_tower(const MoonVitConfig& c) {
  return {.main_width = c.text_hidden_size,
          .out_width = c.text_hidden_size,
          .attention_parity_rows = attention_parity(c.hidden_size, c.intermediate_size),
          .team_heads = c.num_attention_heads,
          .facts = transformer_facts(
              c, {{"position table", cat(c.init_pos_emb_height, "x", c.init_pos_emb_width)}})};
}

}  // namespace fovea::common
