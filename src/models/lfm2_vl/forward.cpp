// The tower of LFM2-VL and its projector in the order of the data.
#include "fovea/tower/ops/patch.h"
#include "models/common/grid/inputs.h"
#include "models/lfm2_vl/model.h"

namespace fovea::lfm2_vl {

void forward(ExecContext& ctx, const Config& c, const Weights& w, const common::GridInputs& in,
             TensorView out) {
  const std::int64_t tokens = out.shape[0];
  const std::int64_t patches = tokens * c.grid.merge_area();
  const Arena::Scope scope(ctx.arena);

  // x = linear(normalise(pixels)) + interpolated position embedding, [patches, hidden_size]
  const TensorView x = ctx.arena.tensor(out.dtype, {patches, c.hidden_size});
  common::embed_patches(ctx, c.grid, w.patch_embedding, in, x);
  ops::add_positions_antialiased(ctx, {.table = w.position_embedding.view(),
                                       .positions = in.positions,
                                       .table_height = c.position_side(),
                                       .table_width = c.position_side(),
                                       .rows = in.patches,
                                       .x = x});

  // x = x + attention(LN1(x)); x = x + mlp(LN2(x)); each view attends to itself
  const common::AttendedRows rows{
      .sequences = {
          .cu_seqlens = in.cu_seqlens, .seqs = in.seqs, .max_seqlen = patches, .rows = in.patches}};
  common::add_blocks(ctx, w.blocks, rows, x);

  // out = projector(LN(join(LN_post(x))))
  common::norm(ctx, w.post_layernorm, x, in.patches, x);
  const TensorView joined = x.reshaped({tokens, c.joined_width()});
  if (w.layer_norm) common::norm(ctx, *w.layer_norm, joined, in.tokens, joined);
  const TensorView wide = ctx.arena.tensor(out.dtype, {tokens, c.projector_hidden_size});
  common::mlp(ctx, w.projector, in.tokens, joined, wide, out);
}

}  // namespace fovea::lfm2_vl
