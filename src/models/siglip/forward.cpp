// SigLIP and its vector in the order of the data.
#include "models/common/views/layers.h"
#include "models/siglip/model.h"

namespace fovea::siglip {

void forward(ExecContext& ctx, const common::SiglipConfig&, const Weights& w,
             const common::ViewInputs& in, TensorView out) {
  const Arena::Scope scope(ctx.arena);
  const common::ViewBatch& views = in.all;
  // rows = LN(siglip(pixels)), [views * patches, hidden_size]
  const TensorView x = ctx.arena.tensor(out.dtype, out.shape);
  common::siglip(ctx, w.tower, in, x);
  common::norm(ctx, w.post_layernorm, x, views.patches, w.head ? x : out);
  if (!w.head) return;
  // vector = head(rows), and divided by its norm where that is wanted, [views, hidden_size]
  const TensorView vectors = ctx.arena.tensor(out.dtype, {views.count, out.shape[1]});
  common::pool(ctx, *w.head, common::attended_rows(views).sequences, x, vectors);
  if (w.unit) common::norm(ctx, *w.unit, vectors, views.views, vectors);
  common::put_vectors(ctx, views, vectors, out);
}

}  // namespace fovea::siglip
