// SigLIP and the projector of Cohere2-Vision and Aya Vision in the order of the data.
#include "fovea/tower/ops/activate.h"
#include "models/cohere_vision/model.h"

namespace fovea::cohere_vision {

void forward(ExecContext& ctx, const Config& c, const Weights& w, const common::ViewInputs& in,
             TensorView out) {
  const std::int64_t count = out.shape[0];
  const LiveRows tokens = in.all.stages.front();
  const Arena::Scope scope(ctx.arena);

  // x = siglip(pixels), [patches, hidden_size]; a token is 2 x 2 neighbouring rows
  const TensorView joined = ctx.arena.tensor(out.dtype, {count, c.joined_width()});
  const TensorView x =
      joined.reshaped({in.all.count * in.all.sequence.patches, c.tower.hidden_size});
  common::siglip(ctx, w.tower, in, x);
  if (c.format == Format::kCohere2) {
    common::norm(ctx, w.norm, x, in.all.patches, x);
  } else {
    common::norm(ctx, w.norm, joined, tokens, joined);
  }

  // out = down(silu(gate(x)) * up(x)), [tokens, text_hidden_size]
  const common::GatedMlp& mlp = w.projector;
  const TensorView gate_up = ctx.arena.tensor(out.dtype, {count, mlp.gate_up.out_features});
  const TensorView wide = ctx.arena.tensor(out.dtype, {count, mlp.down.in_features});
  ops::linear(ctx, {.x = joined, .weight = mlp.gate_up, .rows = tokens, .out = gate_up});
  ops::gated(ctx, {.x = gate_up, .activation = mlp.activation, .rows = tokens, .out = wide});
  ops::linear(ctx, {.x = wide, .weight = mlp.down, .rows = tokens, .out = out});
}

}  // namespace fovea::cohere_vision
