// MoonViT and the projector of Kimi-VL in the order of the data.
#include "models/kimi_vl/model.h"

#include "fovea/tower/ops/patch.h"
#include "models/common/grid/inputs.h"

namespace fovea::kimi_vl {

void forward(ExecContext& ctx, const Config& c, const Weights& w, const common::GridInputs& in,
             TensorView out) {
  const std::int64_t tokens = out.shape[0];
  const std::int64_t patches = tokens * c.grid.merge_area();
  const Shape joined_shape{tokens, c.joined_width()};
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
  const common::AttendedRows rows = common::rotated_rows(ctx, in, w.inv_freq, patches);

  // x = x + attention(LN(x)); x = x + mlp(LN(x))
  common::add_blocks(ctx, w.blocks, rows, x);

  // out = projector(join(LN_pre(LN_final(x))))
  const TensorView normed = ctx.arena.tensor(out.dtype, x.shape);
  const TensorView wide = ctx.arena.tensor(out.dtype, joined_shape);
  common::norm(ctx, w.final_layernorm, x, in.patches, normed);
  common::norm(ctx, w.pre_norm, normed, in.patches, normed);
  common::mlp(ctx, w.projector, in.tokens, normed.reshaped(joined_shape), wide, out);
}

}  // namespace fovea::kimi_vl
