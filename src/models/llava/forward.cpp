// CLIP or SigLIP and the projector of LLaVA in the order of the data.
#include "models/common/views/layers.h"
#include "models/llava/model.h"

namespace fovea::llava {

void forward(ExecContext& ctx, const Config& c, const Weights& w, const common::ViewInputs& in,
             TensorView out) {
  const common::ViewBatch& all = in.all;
  const std::int64_t width = c.tower.hidden_size;
  const Arena::Scope scope(ctx.arena);

  // x = tower(pixels), [patches, hidden_size], without the class row where there is one
  TensorView x = ctx.arena.tensor(out.dtype, {all.count * all.sequence.rows(), width});
  if (const auto* const clip = std::get_if<common::ClipTower>(&w.tower)) {
    common::clip(ctx, *clip, in, x);
    const TensorView patches =
        ctx.arena.tensor(out.dtype, {all.count * all.sequence.patches, width});
    common::take_patches(ctx, all, x, patches);
    x = patches;
  } else {
    common::siglip(ctx, std::get<common::SiglipTower>(w.tower), in, x);
  }

  // out = linear_2(act(linear_1(x))), [patches, text_hidden_size]
  const TensorView wide = ctx.arena.tensor(out.dtype, {x.shape[0], c.text_hidden_size});
  common::mlp(ctx, w.projector, all.patches, x, wide, out);
}

}  // namespace fovea::llava
