// DeepSeek-OCR's encoder in the order of the data: SAM with windows and relative positions, a neck
// and two strided convolutions, CLIP on the result, and one projection of both.
#include "models/deepseek_ocr/model.h"

#include "fovea/tower/ops/rows.h"
#include "models/common/views/layers.h"

namespace fovea::deepseek_ocr {

namespace {

/// Further live counts of all views.
enum Stage : std::size_t { kTokens, kTokenRows };

/// CLIP on SAM's features in place of patches; writes columns [0, clip_width) of `joined`.
void clip(ExecContext& ctx, const Tower& t, const common::ViewBatch& in, ConstTensorView features,
          TensorView joined) {
  const Clip& w = t.weights.clip;
  const Arena::Scope scope(ctx.arena);
  // x = pre_layrnorm([class_embedding; features] + position_embedding)
  const TensorView x =
      ctx.arena.tensor(joined.dtype, {in.count * in.sequence.rows(), t.config.clip_width});
  common::make_sequences(ctx, in, w.class_embedding, w.position_embedding[t.path], features, x);
  common::norm(ctx, w.pre_layrnorm, x, in.rows, x);
  const common::AttendedRows rows = common::attended_rows(in);
  for (const common::Block& layer : w.layers) common::add_block(ctx, layer, rows, x);
  common::take_patches(ctx, in, x, joined);
}

/// Every row of the token grid, followed by a newline row.
void add_newlines(ExecContext& ctx, const Tower& t, const common::ViewBatch& in,
                  ConstTensorView projected, TensorView out) {
  const std::int64_t side = in.view.tokens_side();
  ops::copy_row_blocks(ctx, {.x = projected,
                             .x_block_rows = side,
                             .count = side,
                             .blocks = in.stages[kTokenRows],
                             .out = out,
                             .out_block_rows = side + 1});
  ops::copy_row_blocks(ctx, {.x = t.weights.image_newline.view(),
                             .x_block_rows = 0,
                             .count = 1,
                             .blocks = in.stages[kTokenRows],
                             .out = out,
                             .out_block_rows = side + 1,
                             .out_first = side});
}

}  // namespace

common::ViewLayout layout_of(const common::SquareView& view, Path path) {
  common::ViewLayout layout{.view = view,
                            .sequence = {.patches = view.tokens()},
                            .tokens = view.tokens() + (path == kGlobal ? view.tokens_side() : 0),
                            .stages = {view.tokens(), view.tokens_side()}};
  common::set_sam_chunks(layout);
  return layout;
}

void forward(ExecContext& ctx, const Tower& t, const common::ViewInputs& in, TensorView out) {
  const Arena::Scope scope(ctx.arena);
  const common::ViewBatch& all = in.all;
  const std::int64_t tokens = all.view.tokens();
  const std::int64_t rows = all.count * tokens;
  const TensorView features = ctx.arena.tensor(out.dtype, {rows, t.config.feature_width()});
  common::sam(ctx, t.config.sam, t.weights.sam, static_cast<std::size_t>(t.path), in, features);

  // out = projector([clip(features), features])
  const TensorView joined = ctx.arena.tensor(out.dtype, {rows, t.config.projector_input_dim});
  clip(ctx, t, all, features, joined);
  ops::copy_row_blocks(ctx, {.x = features,
                             .x_block_rows = tokens,
                             .count = tokens,
                             .blocks = all.views,
                             .out = joined,
                             .out_block_rows = tokens,
                             .out_column = t.config.clip_width});
  const bool newlines = t.path == kGlobal;
  const TensorView projected =
      newlines ? ctx.arena.tensor(out.dtype, {rows, t.config.n_embed}) : out;
  ops::linear(
      ctx,
      {.x = joined, .weight = t.weights.projector, .rows = all.stages[kTokens], .out = projected});
  if (newlines) add_newlines(ctx, t, all, projected, out);
}

}  // namespace fovea::deepseek_ocr
