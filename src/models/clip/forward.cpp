// CLIP and its vector in the order of the data.
#include "models/clip/model.h"
#include "models/common/views/layers.h"

namespace fovea::clip {

void forward(ExecContext& ctx, const Config& c, const Weights& w, const common::ViewInputs& in,
             TensorView out) {
  const common::ViewBatch& views = in.all;
  // rows = clip(pixels), [views * (1 + patches), hidden_size]
  if (!w.post_layernorm) return common::clip(ctx, w.tower, views, out);

  const Arena::Scope scope(ctx.arena);
  const TensorView x = ctx.arena.tensor(out.dtype, {out.shape[0], c.tower.hidden_size});
  common::clip(ctx, w.tower, views, x);
  // vector = visual_projection LN(class row), [views, vector width]
  const TensorView classes = ctx.arena.tensor(out.dtype, {views.count, c.tower.hidden_size});
  common::take_first_rows(ctx, views, x, classes);
  common::norm(ctx, *w.post_layernorm, classes, views.views, classes);
  TensorView vectors = classes;
  if (w.visual_projection) {
    vectors = ctx.arena.tensor(out.dtype, {views.count, c.projection_dim});
    ops::linear(
        ctx, {.x = classes, .weight = *w.visual_projection, .rows = views.views, .out = vectors});
  }
  // vector / |vector|
  if (w.unit) common::norm(ctx, *w.unit, vectors, views.views, vectors);
  common::put_vectors(ctx, views, vectors, out);
}

}  // namespace fovea::clip
