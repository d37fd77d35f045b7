// The tower of Gemma 4 in the order of the data.
#include "fovea/tower/ops/linear.h"
#include "fovea/tower/ops/patch.h"
#include "fovea/tower/ops/rows.h"
#include "models/common/grid/inputs.h"
#include "models/gemma4/model.h"

namespace fovea::gemma4 {

namespace {

/// x += table_x[column] + table_y[row]. A table that is one entry wide on an axis has the same
/// entry for every place of it, and on an axis as long as the table a place has its own entry.
void add_positions(ExecContext& ctx, const Weights& w, const common::GridInputs& in, TensorView x) {
  const std::int64_t size = w.x_positions.shape[0];
  ops::add_positions_half_pixel(ctx, {.table = w.x_positions.view(),
                                      .positions = in.positions,
                                      .table_height = 1,
                                      .table_width = size,
                                      .rows = in.patches,
                                      .x = x});
  ops::add_positions_half_pixel(ctx, {.table = w.y_positions.view(),
                                      .positions = in.positions,
                                      .table_height = size,
                                      .table_width = 1,
                                      .rows = in.patches,
                                      .x = x});
}

}  // namespace

void forward(ExecContext& ctx, const Config& c, const Weights& w, const common::GridInputs& in,
             TensorView out) {
  const std::int64_t tokens = out.shape[0];
  const std::int64_t patches = tokens * c.grid.merge_area();
  const Arena::Scope scope(ctx.arena);

  // x = linear(normalise(pixels)) + table_x[column] + table_y[row], [patches, hidden_size]
  const TensorView x = ctx.arena.tensor(out.dtype, {patches, c.hidden_size});
  common::embed_patches(ctx, c.grid, w.patch_embedder, in, x);
  add_positions(ctx, w, in, x);
  const common::AttendedRows rows = common::rotated_rows(ctx, in, w.inv_freq, patches);

  // x = x + RMS(attention(RMS(x))); x = x + RMS(mlp(RMS(x)))
  for (const Block& block : w.blocks) add_block(ctx, block, rows, w.ones, x);

  // pooled = mean of the patches of a token, or (mean - bias) * scale, [tokens, hidden_size]
  const TensorView pooled = ctx.arena.tensor(out.dtype, {tokens, c.hidden_size});
  ops::MeanRowBlocksArgs mean{
      .x = x, .block_rows = c.grid.merge_area(), .blocks = in.tokens, .out = pooled};
  if (w.standardization) {
    mean.bias = w.standardization->bias.view();
    mean.scale = w.standardization->scale.view();
  }
  ops::mean_row_blocks(ctx, mean);

  // out = linear(RMS(pooled))
  const TensorView normed = ops::input_rows(ctx, w.embedding_projection, pooled);
  common::norm(ctx, w.pooled_norm, pooled, in.tokens, normed);
  ops::linear(ctx, {.x = normed, .weight = w.embedding_projection, .rows = in.tokens, .out = out});
}

}  // namespace fovea::gemma4
