// The tower and the resampler of ERNIE-4.5-VL in the order of the data.
#include "fovea/tower/ops/patch.h"
#include "models/common/grid/inputs.h"
#include "models/ernie4_5_vl/model.h"

namespace fovea::ernie4_5_vl {

namespace {

/// LN(fc2(gelu(fc1(x)))), [rows, joined_width]
TensorView joined(ExecContext& ctx, const JoinedMlp& layer, LiveRows rows, ConstTensorView x) {
  const Shape shape{x.shape[0], layer.mlp.fc2.out_features};
  const TensorView out = ctx.arena.tensor(x.dtype, shape);
  const TensorView wide = ctx.arena.tensor(x.dtype, {shape[0], layer.mlp.fc1.out_features});
  common::mlp(ctx, layer.mlp, rows, x, wide, out);
  common::norm(ctx, layer.norm, out, rows, out);
  return out;
}

}  // namespace

void forward(ExecContext& ctx, const Config& c, const Weights& w, const common::GridInputs& in,
             const PairInputs& pairs, TensorView out) {
  const std::int64_t tokens = out.shape[0];
  const std::int64_t patches = in.positions.shape[0];
  const std::int64_t width = c.joined_width();
  const Arena::Scope scope(ctx.arena);

  // x = normalise(pixels) Wp^T, [patches, hidden_size]
  const TensorView x = ctx.arena.tensor(out.dtype, {patches, c.hidden_size});
  common::embed_patches(ctx, c.grid, w.patch_embed, in, x);
  const common::AttendedRows rows = common::rotated_rows(ctx, in, w.inv_freq, patches);

  // x = x + attention(LN1(x)); x = x + mlp(LN2(x)), each frame by itself
  common::add_blocks(ctx, w.blocks, rows, x);
  common::norm(ctx, w.ln, x, in.patches, x);

  // y = spatial_linear(join 2 x 2 (x)), [patches / 4, joined_width]
  const ConstTensorView squares = x.reshaped({patches / c.grid.merge_area(), width});
  const TensorView y = joined(ctx, w.spatial_linear, pairs.joined, squares);

  // z = temporal_linear([y of the first frame; y of the second]), [tokens, joined_width]
  const TensorView halves = ctx.arena.tensor(out.dtype, {2 * tokens, width});
  ops::gather_rows(ctx, {.x = y, .index = pairs.pairs, .rows = pairs.halves, .out = halves});
  const TensorView z =
      joined(ctx, w.temporal_linear, in.tokens, halves.reshaped({tokens, 2 * width}));

  // out = RMSNorm(mlp(z))
  ops::linear(ctx, {.x = z, .weight = w.mlp, .rows = in.tokens, .out = out});
  common::norm(ctx, w.after_norm, out, in.tokens, out);
}

}  // namespace fovea::ernie4_5_vl
