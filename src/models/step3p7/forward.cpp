// The Perception Encoder of Step-3.7 in the order of the data.
#include <algorithm>

#include "fovea/tower/ops/patch.h"
#include "models/common/rope.h"
#include "models/common/views/layers.h"
#include "models/step3p7/model.h"

namespace fovea::step3p7 {

namespace {

/// Further live counts of a chunk of views.
enum Stage : std::size_t { kHalf, kTokens };

std::int64_t half_side(const common::SquareView& view) { return view.grid() / 2; }

}  // namespace

common::ViewLayout layout_of(const common::SquareView& view) {
  constexpr std::int64_t kChunkRows = 16384;  // enough to fill any device
  const std::int64_t half = half_side(view);
  return {.view = view,
          .sequence = {.patches = view.patches(), .class_rows = 0, .first_patch = 0},
          .tokens = view.tokens(),
          .stages = {},
          .views_per_chunk = std::max<std::int64_t>(1, kChunkRows / view.patches()),
          .chunk_stages = {half * half, view.tokens()}};
}

void forward(ExecContext& ctx, const Config& c, const Weights& w, const common::ViewBatch& in,
             ConstTensorView positions, TensorView out) {
  const std::int64_t grid = in.view.grid();
  const std::int64_t half = half_side(in.view);
  const LiveRows tokens = in.stages[kTokens];
  const Arena::Scope scope(ctx.arena);

  // x = LN_pre(conv(normalise(pixels)) + interpolated position embedding), [patches, width]
  const TensorView x = ctx.arena.tensor(out.dtype, {in.count * grid * grid, c.width});
  common::embed_patches(ctx, in, w.patch_embed, x);
  ops::add_positions_half_pixel(ctx, {.table = w.positions.view(),
                                      .positions = positions,
                                      .table_height = c.view.grid(),
                                      .table_width = c.view.grid(),
                                      .rows = in.patches,
                                      .x = x});
  common::norm(ctx, w.ln_pre, x, in.patches, x);

  // x = x + ls_1 attention(LN1(x)); x = x + ls_2 mlp(LN2(x))
  const common::AttendedRows rows =
      common::rotated_rows(ctx, common::attended_rows(in).sequences, positions, w.inv_freq);
  common::add_blocks(ctx, w.blocks, rows, x);

  // out = projector(conv 3x3 of stride 2 (conv 3x3 of stride 2 (x)))
  const TensorView wide = ctx.arena.tensor(out.dtype, {in.count * half * half, 2 * c.width});
  const TensorView features = ctx.arena.tensor(out.dtype, {out.shape[0], 4 * c.width});
  common::conv3x3(ctx, w.vit_downsampler1, x, grid, in.stages[kHalf], wide);
  common::conv3x3(ctx, w.vit_downsampler2, wide, half, tokens, features);
  ops::linear(ctx, {.x = features, .weight = w.vit_large_projector, .rows = tokens, .out = out});
}

}  // namespace fovea::step3p7
