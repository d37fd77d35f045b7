// The vision tower of Qwen3-VL (and of others, some without deepstack levels), in the order of the
// data.
#include "models/qwen3_vl/model.h"

#include <vector>

#include "fovea/tower/ops/patch.h"
#include "models/common/grid/inputs.h"

namespace fovea::qwen3_vl {

void forward(ExecContext& ctx, const Config& c, const Weights& w, const common::GridInputs& in,
             TensorView out) {
  const std::int64_t tokens = out.shape[0];
  const std::int64_t patches = tokens * c.grid.merge_area();
  const Shape joined_shape{tokens, c.joined_width()};
  const Arena::Scope scope(ctx.arena);

  const TensorView x = ctx.arena.tensor(out.dtype, {patches, c.hidden_size});
  // x = conv3d(normalise(pixels)) + interpolated position embedding
  common::embed_patches(ctx, c.grid, w.patch_embed, in, x);
  ops::add_positions_bilinear(ctx, {.table = w.pos_embed.view(),
                                    .positions = in.positions,
                                    .table_height = c.position_side(),
                                    .table_width = c.position_side(),
                                    .rows = in.patches,
                                    .x = x});
  const common::AttendedRows rows = common::rotated_rows(ctx, in, w.inv_freq, patches);

  // Deepstack mergers read the residual stream between blocks. Their norm takes a snapshot of it,
  // so the two GEMMs can overlap with the blocks that follow.
  ExecContext side = ctx.on_side();
  const bool has_deepstack = !w.deepstack.empty();
  const TensorView side_wide =
      has_deepstack ? ctx.arena.tensor(out.dtype, joined_shape) : TensorView{};
  std::vector<TensorView> joined(w.deepstack.size());
  for (TensorView& level : joined) level = ctx.arena.tensor(out.dtype, joined_shape);
  // deepstack[k] = mlp_k(LN_k(join(x)))
  const auto add_level = [&](std::size_t k, TensorView level) {
    const Merger& merger = w.deepstack[k];
    common::norm(ctx, merger.norm, level.reshaped(joined_shape), in.tokens, joined[k]);
    side.stream.wait_for(ctx.stream);
    common::mlp(side, merger.mlp, in.tokens, joined[k], side_wide, out,
                (static_cast<std::int64_t>(k) + 1) * c.out_hidden_size);
  };

  // x = x + attention(LN1(x)); x = x + mlp(LN2(x))
  common::add_blocks(ctx, w.blocks, rows, x, c.deepstack_visual_indexes, add_level);

  // out = mlp(join(LN(x)))
  const TensorView normed = ctx.arena.tensor(out.dtype, x.shape);
  const TensorView wide = ctx.arena.tensor(out.dtype, joined_shape);
  common::norm(ctx, w.merger.norm, x, in.patches, normed);
  common::mlp(ctx, w.merger.mlp, in.tokens, normed.reshaped(joined_shape), wide, out);
  if (has_deepstack) ctx.stream.wait_for(ctx.side);
}

}  // namespace fovea::qwen3_vl
