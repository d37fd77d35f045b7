// The vision tower of GLM-4.1V and its successors in the order of the data.
#include "models/glm4v/model.h"

#include "fovea/tower/ops/activate.h"
#include "fovea/tower/ops/patch.h"
#include "models/common/grid/inputs.h"

namespace fovea::glm4v {

namespace {

/// out = mlp(z) of z = gelu(LN(proj(x))); x and out [tokens, out_hidden_size]
void merge(ExecContext& ctx, const Merger& merger, LiveRows rows, ConstTensorView x,
           TensorView out) {
  const Arena::Scope scope(ctx.arena);
  const TensorView z = ctx.arena.tensor(x.dtype, x.shape);
  ops::linear(ctx, {.x = x, .weight = merger.proj, .rows = rows, .out = z});
  common::norm(ctx, merger.norm, z, rows, z);
  ops::activate(ctx, {.activation = ops::Activation::kGeluErf, .rows = rows, .x = z});
  common::mlp(ctx, merger.mlp, rows, z, out);
}

/// x = RMS(x) + interpolated positions
void add_positions(ExecContext& ctx, const Config& c, const Weights& w,
                   const common::GridInputs& in, TensorView x) {
  common::norm(ctx, w.post_conv_layernorm, x, in.patches, x);
  ops::add_positions_bicubic(ctx, {.table = w.position_embedding.view(),
                                   .positions = in.positions,
                                   .table_height = c.position_side(),
                                   .table_width = c.position_side(),
                                   .rows = in.patches,
                                   .x = x});
}

}  // namespace

void forward(ExecContext& ctx, const Config& c, const Weights& w, const common::GridInputs& in,
             TensorView out) {
  const std::int64_t tokens = out.shape[0];
  const std::int64_t patches = tokens * c.grid.merge_area();
  const Arena::Scope scope(ctx.arena);

  // x = conv3d(normalise(pixels)), [patches, hidden_size]
  const TensorView x = ctx.arena.tensor(out.dtype, {patches, c.hidden_size});
  common::embed_patches(ctx, c.grid, w.patch_embed, in, x);
  if (c.has_table) add_positions(ctx, c, w, in, x);
  const common::AttendedRows rows = common::rotated_rows(ctx, in, w.inv_freq, patches);

  // x = x + attention(RMS1(x)); x = x + mlp(RMS2(x))
  for (const common::GatedBlock& block : w.blocks) common::add_block(ctx, block, rows, x);

  // y = conv2d(RMS(x)): the patches of a token stand side by side, [tokens, out_hidden_size]
  common::norm(ctx, w.post_layernorm, x, in.patches, x);
  const TensorView y = ctx.arena.tensor(out.dtype, out.shape);
  ops::linear(ctx, {.x = x.reshaped({tokens, w.downsample.in_features}),
                    .weight = w.downsample,
                    .rows = in.tokens,
                    .out = y});
  merge(ctx, w.merger, in.tokens, y, out);
}

}  // namespace fovea::glm4v
