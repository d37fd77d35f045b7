// DeepSeek-OCR 2's encoder in the order of the data: SAM, a decoder over its features and learned
// queries, and a projection of what becomes of the queries.
#include "fovea/tower/ops/rows.h"
#include "models/common/rope.h"
#include "models/common/views/layers.h"
#include "models/deepseek_ocr2/model.h"

namespace fovea::deepseek_ocr2 {

namespace {

/// Further live counts of all views.
enum Stage : std::size_t { kTokens };

/// x passes through all layers. The features of a view see each other, a query sees them and the
/// queries up to itself. @param x [views * rows of a sequence, hidden_size]
void decode(ExecContext& ctx, const Weights& w, const common::ViewBatch& in,
            ConstTensorView positions, TensorView x) {
  const Arena::Scope scope(ctx.arena);
  ops::Sequences sequences = common::attended_rows(in).sequences;
  sequences.prefix_rows = in.sequence.patches;
  const common::AttendedRows rows = common::rotated_rows(ctx, sequences, positions, w.inv_freq);
  // x = x + attention(norm1(x)); x = x + down(act(gate(norm2(x))) * up(norm2(x)))
  for (const common::GatedBlock& layer : w.layers) common::add_block(ctx, layer, rows, x);
}

}  // namespace

common::ViewLayout layout_of(const common::SquareView& view) {
  common::ViewLayout layout{
      .view = view,
      .sequence = {.patches = view.tokens(), .class_rows = view.tokens(), .first_patch = 0},
      .tokens = view.tokens(),
      .stages = {view.tokens()}};
  common::set_sam_chunks(layout);
  return layout;
}

void forward(ExecContext& ctx, const Tower& t, const common::ViewInputs& in,
             ConstTensorView positions, TensorView out) {
  const Weights& w = t.weights;
  const common::ViewBatch& all = in.all;
  const std::int64_t width = t.config.decoder.hidden_size;
  const auto path = static_cast<std::size_t>(t.path);
  const Arena::Scope scope(ctx.arena);

  // x = [sam(pixels); queries] for every view, [views * 2 tokens, hidden_size]
  const TensorView features = ctx.arena.tensor(out.dtype, {out.shape[0], width});
  const TensorView x = ctx.arena.tensor(out.dtype, {all.count * all.sequence.rows(), width});
  common::sam(ctx, t.config.sam, w.sam, path, in, features);
  common::join_sequences(ctx, all, w.queries[path], features, x);
  decode(ctx, w, all, positions, x);

  // out = projector(norm(x of the queries))
  const TensorView queries = features;  // they have done their work
  ops::copy_row_blocks(ctx, {.x = x,
                             .x_block_rows = all.sequence.rows(),
                             .x_first = all.sequence.first_class_row(),
                             .count = all.sequence.class_rows,
                             .blocks = all.views,
                             .out = queries,
                             .out_block_rows = all.sequence.class_rows});
  common::norm(ctx, w.norm, queries, all.stages[kTokens], queries);
  ops::linear(ctx, {.x = queries, .weight = w.projector, .rows = all.stages[kTokens], .out = out});
}

}  // namespace fovea::deepseek_ocr2
