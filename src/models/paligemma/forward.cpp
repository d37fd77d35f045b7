// SigLIP and the projector of PaliGemma in the order of the data.
#include "models/paligemma/model.h"

namespace fovea::paligemma {

void forward(ExecContext& ctx, const Config& c, const Weights& w, const common::ViewInputs& in,
             TensorView out) {
  const Arena::Scope scope(ctx.arena);
  // x = LN(siglip(pixels)), [patches, hidden_size]
  const TensorView x = ctx.arena.tensor(out.dtype, {out.shape[0], c.tower.hidden_size});
  common::siglip(ctx, w.tower, in, x);
  common::norm(ctx, w.post_norm, x, in.all.patches, x);
  // out = x projection + bias, [patches, projection_dim]
  ops::linear(ctx, {.x = x, .weight = w.projection, .rows = in.all.patches, .out = out});
}

}  // namespace fovea::paligemma
