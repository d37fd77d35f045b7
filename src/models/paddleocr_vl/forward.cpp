// The tower of PaddleOCR-VL and its projector in the order of the data.
#include "fovea/tower/ops/patch.h"
#include "models/common/grid/inputs.h"
#include "models/paddleocr_vl/model.h"

namespace fovea::paddleocr_vl {

void forward(ExecContext& ctx, const Config& c, const Weights& w, const common::GridInputs& in,
             TensorView out) {
  const std::int64_t tokens = out.shape[0];
  const std::int64_t patches = tokens * c.grid.merge_area();
  const Shape joined_shape{tokens, c.joined_width()};
  const Arena::Scope scope(ctx.arena);

  // x = conv2d(normalise(pixels)) + interpolated position embedding, [patches, hidden_size]
  const TensorView x = ctx.arena.tensor(out.dtype, {patches, c.hidden_size});
  common::embed_patches(ctx, c.grid, w.patch_embedding, in, x);
  ops::add_positions_half_pixel(ctx, {.table = w.position_embedding.view(),
                                      .positions = in.positions,
                                      .table_height = c.position_side(),
                                      .table_width = c.position_side(),
                                      .rows = in.patches,
                                      .x = x});
  const common::AttendedRows rows = common::rotated_rows(ctx, in, w.inv_freq, patches);

  // x = x + attention(LN1(x)); x = x + mlp(LN2(x))
  common::add_blocks(ctx, w.blocks, rows, x);

  // out = projector(join(LN_pre(LN_post(x))))
  const TensorView wide = ctx.arena.tensor(out.dtype, joined_shape);
  common::norm(ctx, w.post_layernorm, x, in.patches, x);
  common::norm(ctx, w.pre_norm, x, in.patches, x);
  common::mlp(ctx, w.projector, in.tokens, x.reshaped(joined_shape), wide, out);
}

}  // namespace fovea::paddleocr_vl
