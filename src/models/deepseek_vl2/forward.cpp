// DeepSeek-VL2's tower and its projector in the order of the data.
#include "fovea/tower/ops/grid.h"
#include "models/deepseek_vl2/model.h"

namespace fovea::deepseek_vl2 {

namespace {

/// Further live counts of all views.
enum Stage : std::size_t { kTokens };

}  // namespace

common::ViewLayout layout_of(const Config& config) {
  common::ViewLayout layout = common::siglip_layout(config.tower);
  layout.tokens = config.tokens();
  layout.stages = {config.tokens()};
  return layout;
}

void forward(ExecContext& ctx, const Config& c, const Weights& w, const common::ViewInputs& in,
             TensorView out) {
  const common::ViewBatch& all = in.all;
  const std::int64_t tokens = out.shape[0];
  const std::int64_t width = c.tower.hidden_size;
  const Arena::Scope scope(ctx.arena);

  // x = norm(blocks(patches + positions)), [views * patches, width]
  const TensorView x = ctx.arena.tensor(out.dtype, {all.count * all.view.patches(), width});
  common::siglip(ctx, w.vision, in, x);
  common::norm(ctx, w.norm, x, all.patches, x);

  // out = layers.2(gelu(layers.0(2 x 2 patches))); patches beyond the grid are 0
  const TensorView columns = ctx.arena.tensor(out.dtype, {tokens, 9 * width});
  const TensorView wide = ctx.arena.tensor(out.dtype, {tokens, c.projector_width});
  ops::im2col_3x3(ctx, {.x = x,
                        .height = all.view.grid(),
                        .width = all.view.grid(),
                        .stride = 2,
                        .rows = all.stages[kTokens],
                        .out = columns});
  common::mlp(ctx, w.projector, all.stages[kTokens], columns, wide, out);
}

}  // namespace fovea::deepseek_vl2
