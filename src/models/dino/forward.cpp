// DINOv2 and DINOv3 in the order of the data.
#include "fovea/tower/ops/rows.h"
#include "models/common/rope.h"
#include "models/common/views/layers.h"
#include "models/dino/model.h"

namespace fovea::dino {

// These two are not in the unnamed namespace: common::add_block finds them by the layer.
static void add_mlp(ExecContext& ctx, const FeedForward& layer, LiveRows rows,
                    ConstTensorView normed, TensorView x) {
  std::visit([&](const auto& kind) { common::add_mlp(ctx, kind, rows, normed, x); }, layer.kind);
}

static const ops::PackedLinear& first_layer(const FeedForward& layer) {
  return std::visit(
      [](const auto& kind) -> const ops::PackedLinear& { return common::first_layer(kind); },
      layer.kind);
}

namespace {

/// Puts rows that are the same for every view to their place in it. @param rows [count, features].
void put_constant(ExecContext& ctx, const common::ViewBatch& in, const Tensor& rows,
                  std::int64_t first, TensorView x) {
  ops::copy_row_blocks(ctx, {.x = rows.view(),
                             .x_block_rows = 0,
                             .count = rows.shape[0],
                             .blocks = in.views,
                             .out = x,
                             .out_block_rows = in.sequence.rows(),
                             .out_first = first});
}

/// x = [class token; registers; conv(normalise(pixels))] + positions, if there is a table of them.
void embed(ExecContext& ctx, const Weights& w, const common::ViewBatch& in, TensorView x) {
  const Arena::Scope scope(ctx.arena);
  const std::int64_t count = in.sequence.patches;
  const TensorView patches = ctx.arena.tensor(x.dtype, {in.count * count, x.shape[1]});
  common::embed_patches(ctx, in, w.patch_embedding, patches);
  put_constant(ctx, in, w.cls_token, 0, x);
  if (w.register_tokens) put_constant(ctx, in, *w.register_tokens, 1, x);
  ops::copy_row_blocks(ctx, {.x = patches,
                             .x_block_rows = count,
                             .count = count,
                             .blocks = in.views,
                             .out = x,
                             .out_block_rows = in.sequence.rows(),
                             .out_first = in.sequence.first_patch});
  if (w.positions) ops::add_table(ctx, {.table = w.positions->view(), .rows = in.rows, .x = x});
}

}  // namespace

void forward(ExecContext& ctx, const Tower& tower, const Weights& w, const common::ViewBatch& in,
             ConstTensorView positions, TensorView out) {
  const Arena::Scope scope(ctx.arena);
  const TensorView x = ctx.arena.tensor(out.dtype, out.shape);
  embed(ctx, w, in, x);
  // x = x + ls1 attention(norm1(x)); x = x + ls2 mlp(norm2(x)), q and k of patches rotated
  common::AttendedRows rows = common::attended_rows(in);
  if (w.inv_freq) rows = common::rotated_rows(ctx, rows.sequences, positions, *w.inv_freq);
  for (const Layer& layer : w.layers) common::add_block(ctx, layer, rows, x);

  // rows = LN(x), [views * rows, hidden_size]
  if (tower.output == TowerOutput::kRows) return common::norm(ctx, w.layernorm, x, in.rows, out);
  // vector = LN(class row), and divided by its norm where that is wanted, [views, hidden_size]
  const TensorView vectors = ctx.arena.tensor(out.dtype, {in.count, out.shape[1]});
  common::take_first_rows(ctx, in, x, vectors);
  common::norm(ctx, w.layernorm, vectors, in.views, vectors);
  if (w.unit) common::norm(ctx, *w.unit, vectors, in.views, vectors);
  common::put_vectors(ctx, in, vectors, out);
}

}  // namespace fovea::dino
