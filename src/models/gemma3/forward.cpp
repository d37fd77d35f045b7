// SigLIP and the projector of Gemma 3 in the order of the data.
#include "fovea/tower/ops/rows.h"
#include "models/gemma3/model.h"

namespace fovea::gemma3 {

void forward(ExecContext& ctx, const Config& c, const Weights& w, const common::ViewInputs& in,
             TensorView out) {
  const std::int64_t width = c.tower.hidden_size;
  const LiveRows tokens = in.all.stages.front();
  const Arena::Scope scope(ctx.arena);

  // x = LN(siglip(pixels)), [patches, hidden_size], the patches of a token side by side
  const TensorView x = ctx.arena.tensor(out.dtype, {in.all.count * in.all.sequence.patches, width});
  common::siglip(ctx, w.tower, in, x);
  common::norm(ctx, w.post_norm, x, in.all.patches, x);

  // out = RMS(mean of the patches of a token) projection, [tokens, text_hidden_size]
  const TensorView pooled = ctx.arena.tensor(out.dtype, {out.shape[0], width});
  ops::mean_row_blocks(ctx, {.x = x,
                             .block_rows = c.tower.view.merge * c.tower.view.merge,
                             .blocks = tokens,
                             .out = pooled});
  common::norm(ctx, w.pooled_norm, pooled, tokens, pooled);
  ops::linear(ctx, {.x = pooled, .weight = w.projection, .rows = tokens, .out = out});
}

}  // namespace fovea::gemma3
