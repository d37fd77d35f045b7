// The vision tower of Qwen2-VL in the order of the data.
#include "models/qwen2_vl/model.h"

#include "models/common/grid/inputs.h"

namespace fovea::qwen2_vl {

void forward(ExecContext& ctx, const Config& c, const Weights& w, const common::GridInputs& in,
             TensorView out) {
  const std::int64_t tokens = out.shape[0];
  const std::int64_t patches = tokens * c.grid.merge_area();
  const Shape joined_shape{tokens, c.joined_width()};
  const Arena::Scope scope(ctx.arena);

  // x = conv3d(normalise(pixels)), [patches, embed_dim]
  const TensorView x = ctx.arena.tensor(out.dtype, {patches, c.embed_dim});
  common::embed_patches(ctx, c.grid, w.patch_embed, in, x);
  const common::AttendedRows rows = common::rotated_rows(ctx, in, w.inv_freq, patches);

  // x = x + attention(LN1(x)); x = x + mlp(LN2(x))
  for (const common::Block& block : w.blocks) common::add_block(ctx, block, rows, x);

  // out = mlp(join(LN(x)))
  const TensorView normed = ctx.arena.tensor(out.dtype, x.shape);
  const TensorView wide = ctx.arena.tensor(out.dtype, joined_shape);
  common::norm(ctx, w.ln_q, x, in.patches, normed);
  common::mlp(ctx, w.merger, in.tokens, normed.reshaped(joined_shape), wide, out);
}

}  // namespace fovea::qwen2_vl
