// SigLIP and the projector of Cohere2-Vision and Aya Vision in the order of the data.
#include "models/cohere_vision/model.h"

namespace fovea::cohere_vision {

void forward(ExecContext& ctx, const Config& c, const Weights& w, const common::ViewInputs& in,
             TensorView out) {
  const LiveRows tokens = in.all.stages.front();
  const Arena::Scope scope(ctx.arena);

  // x = siglip(pixels), [patches, hidden_size]; a token is 2 x 2 neighbouring rows
  const TensorView joined = ctx.arena.tensor(out.dtype, {out.shape[0], c.joined_width()});
  const TensorView x =
      joined.reshaped({in.all.count * in.all.sequence.patches, c.tower.hidden_size});
  common::siglip(ctx, w.tower, in, x);
  if (c.format == Format::kCohere2) {
    common::norm(ctx, w.norm, x, in.all.patches, x);
  } else {
    common::norm(ctx, w.norm, joined, tokens, joined);
  }

  // out = down(silu(gate(x)) * up(x)), [tokens, text_hidden_size]
  common::mlp(ctx, w.projector, tokens, joined, out);
}

}  // namespace fovea::cohere_vision
