// The vision tower of Step3-VL in the order of the data.
#include "models/step3_vl/model.h"

#include "fovea/tower/ops/rows.h"
#include "models/common/views/layers.h"

namespace fovea::step3_vl {

namespace {

/// Further live counts of a chunk of views.
enum Stage : std::size_t { kLinePairs, kHalf, kTokens };

/// Side of the grid after the first convolution.
std::int64_t half_side(const common::SquareView& view) { return view.grid() / 2; }

/// x = x + LN1(out_proj(attention(qkv(x)))); x = x + LN2(fc2(quick_gelu(fc1(x))))
void add_layer(ExecContext& ctx, const Layer& layer, const common::AttendedRows& rows,
               TensorView x) {
  const Arena::Scope scope(ctx.arena);
  const TensorView branch = ctx.arena.tensor(x.dtype, x.shape);
  common::attend(ctx, layer.attn, rows, x, {}, branch);
  common::norm(ctx, layer.layer_norm1, branch, rows.live(), x, x);
  const TensorView wide = ctx.arena.tensor(x.dtype, {x.shape[0], layer.mlp.fc1.out_features});
  common::mlp(ctx, layer.mlp, rows.live(), x, wide, branch);
  common::norm(ctx, layer.layer_norm2, branch, rows.live(), x, x);
}

/// half = conv 2x2 of stride 2 (x without its class rows), [views * (grid / 2)^2,
/// output_hidden_size]
void halve(ExecContext& ctx, const Weights& w, const common::ViewBatch& in, ConstTensorView x,
           TensorView half) {
  const Arena::Scope scope(ctx.arena);
  const std::int64_t side = half_side(in.view);
  const std::int64_t width = x.shape[1];
  const std::int64_t rows = half.shape[0];
  const TensorView grid = ctx.arena.tensor(x.dtype, {4 * rows, width});
  common::take_patches(ctx, in, x, grid);
  // Neighbours along x lie side by side already; those along y are one line of the grid apart.
  const TensorView pairs = grid.reshaped({2 * rows, 2 * width});
  const TensorView squares = ctx.arena.tensor(x.dtype, {rows, 4 * width});
  for (std::int64_t line = 0; line < 2; ++line) {
    ops::copy_row_blocks(ctx, {.x = pairs,
                               .x_block_rows = 2 * side,
                               .x_first = line * side,
                               .count = side,
                               .blocks = in.stages[kLinePairs],
                               .out = squares,
                               .out_block_rows = side,
                               .out_column = line * 2 * width});
  }
  ops::linear(ctx,
              {.x = squares, .weight = w.vit_downsampler, .rows = in.stages[kHalf], .out = half});
}

/// out = projector(conv 3x3 of stride 2 (conv 2x2 of stride 2 (x))), [views * tokens,
/// text_hidden_size]
void project(ExecContext& ctx, const Weights& w, const common::ViewBatch& in, ConstTensorView x,
             TensorView out) {
  const Arena::Scope scope(ctx.arena);
  const std::int64_t side = half_side(in.view);
  const LiveRows tokens = in.stages[kTokens];
  const TensorView features =
      ctx.arena.tensor(x.dtype, {out.shape[0], w.vit_large_projector.in_features});
  const TensorView half =
      ctx.arena.tensor(x.dtype, {in.count * side * side, w.vit_downsampler.out_features});
  halve(ctx, w, in, x, half);
  common::conv3x3(ctx, w.vit_downsampler2, half, side, tokens, features);
  ops::linear(ctx, {.x = features, .weight = w.vit_large_projector, .rows = tokens, .out = out});
}

}  // namespace

common::ViewLayout layout_of(const common::SquareView& view) {
  constexpr std::int64_t kChunkRows = 16384;  // enough to fill any device
  const std::int64_t half = half_side(view);
  return {.view = view,
          .sequence = {.patches = view.patches(),
                       .class_rows = Config::kClassRows,
                       .first_patch = Config::kClassRows},
          .tokens = view.tokens(),
          .stages = {},
          .views_per_chunk = kChunkRows / view.patches(),
          .chunk_stages = {half, half * half, view.tokens()}};
}

void forward(ExecContext& ctx, const Weights& w, Path path, const common::ViewBatch& in,
             TensorView out) {
  const Arena::Scope scope(ctx.arena);
  // x = [class; class; class; class; conv(normalise(pixels))] + positions
  const TensorView x = ctx.arena.tensor(
      out.dtype, {in.count * in.sequence.rows(), w.patch_embedding.proj.out_features});
  common::embed_views(ctx, in, w.patch_embedding, w.class_rows, w.positions[path], x);
  const common::AttendedRows rows = common::attended_rows(in);
  for (const Layer& layer : w.layers) add_layer(ctx, layer, rows, x);
  project(ctx, w, in, x, out);
}

}  // namespace fovea::step3_vl
