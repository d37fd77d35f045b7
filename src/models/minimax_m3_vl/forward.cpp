// The tower of MiniMax-M3 and its projector in the order of the data.
#include "models/common/grid/inputs.h"
#include "models/minimax_m3_vl/model.h"

namespace fovea::minimax_m3_vl {

void forward(ExecContext& ctx, const Config& c, const Weights& w, const common::GridInputs& in,
             TensorView out) {
  const std::int64_t tokens = out.shape[0];
  const std::int64_t patches = tokens * c.grid.merge_area();
  const Arena::Scope scope(ctx.arena);

  // x = LN(conv3d(normalise(pixels))), [patches, hidden_size]
  const TensorView x = ctx.arena.tensor(out.dtype, {patches, c.hidden_size});
  common::embed_patches(ctx, c.grid, w.patch_embedding, in, x);
  common::norm(ctx, w.pre_layrnorm, x, in.patches, x);
  const common::AttendedRows rows = common::rotated_rows(ctx, in, w.inv_freq, patches);

  // x = x + attention(LN1(x)); x = x + mlp(LN2(x)); segments of videos attend to themselves
  common::add_blocks(ctx, w.blocks, rows, x);

  // y = projector(x), [patches, text_hidden_size]; out = mlp(join(y))
  const TensorView y = ctx.arena.tensor(out.dtype, {patches, c.text_hidden_size});
  {
    const Arena::Scope inner(ctx.arena);
    const TensorView wide = ctx.arena.tensor(out.dtype, {patches, c.projector_hidden_size});
    common::mlp(ctx, w.projector, in.patches, x, wide, y);
  }
  const TensorView wide = ctx.arena.tensor(out.dtype, {tokens, c.projector_hidden_size});
  common::mlp(ctx, w.patch_merge_mlp, in.tokens, y.reshaped({tokens, c.joined_width()}), wide, out);
}

}  // namespace fovea::minimax_m3_vl
