// SigLIP and the aligner of DeepSeek-VL in the order of the data.
#include "models/deepseek_vl/model.h"

namespace fovea::deepseek_vl {

void forward(ExecContext& ctx, const Config& c, const Weights& w, const common::ViewInputs& in,
             TensorView out) {
  const Arena::Scope scope(ctx.arena);
  // x = LN(siglip(pixels)), [patches, hidden_size]
  const TensorView x = ctx.arena.tensor(out.dtype, {out.shape[0], c.tower.hidden_size});
  common::siglip(ctx, w.tower, in, x);
  common::norm(ctx, w.post_norm, x, in.all.patches, x);
  // out = linear2(gelu_erf(linear1(x))), [patches, text_hidden_size]
  const TensorView wide = ctx.arena.tensor(out.dtype, out.shape);
  common::mlp(ctx, w.aligner, in.all.patches, x, wide, out);
}

}  // namespace fovea::deepseek_vl
