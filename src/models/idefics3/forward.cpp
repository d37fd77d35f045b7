// SigLIP and the connector of Idefics3 and SmolVLM in the order of the data.
#include "models/idefics3/model.h"

namespace fovea::idefics3 {

void forward(ExecContext& ctx, const Config& c, const Weights& w, const common::ViewInputs& in,
             TensorView out) {
  const LiveRows tokens = in.all.stages.front();
  const Arena::Scope scope(ctx.arena);

  // x = LN(siglip(pixels)), [patches, hidden_size], the patches of a token side by side
  const TensorView joined = ctx.arena.tensor(out.dtype, {out.shape[0], c.joined_width()});
  const TensorView x =
      joined.reshaped({in.all.count * in.all.sequence.patches, c.tower.hidden_size});
  common::siglip(ctx, w.tower, in, x);
  common::norm(ctx, w.post_layernorm, x, in.all.patches, x);

  // out = proj(shuffle(x)), [tokens, text_hidden_size]
  ops::linear(ctx, {.x = joined, .weight = w.modality_projection, .rows = tokens, .out = out});
}

}  // namespace fovea::idefics3
