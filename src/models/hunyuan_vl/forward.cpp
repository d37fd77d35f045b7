// The tower of HunyuanOCR and its projector in the order of the data.
#include "fovea/tower/ops/patch.h"
#include "models/common/views/token_grid.h"
#include "models/hunyuan_vl/model.h"

namespace fovea::hunyuan_vl {

namespace {

/// mixed = after_rms([begin; end; mlp([newline; tokens])])
/// @param x [patches, hidden_size]. @param mixed [kNumSeparators + tokens, text_hidden_size].
void project(ExecContext& ctx, const Config& c, const Projector& w, const common::GridInputs& in,
             const RowInputs& rows, TensorView x, TensorView mixed) {
  const std::int64_t tokens = mixed.shape[0] - kNumSeparators;
  const Arena::Scope scope(ctx.arena);
  // tokens = conv1x1(act(conv(before_rms(x)))), a convolution over the patches of a token
  const TensorView wide = ctx.arena.tensor(mixed.dtype, {1 + tokens, c.wide()});
  const TensorView half = ctx.arena.tensor(mixed.dtype, {tokens, c.conv_width()});
  common::norm(ctx, w.before_rms, x, in.patches, x);
  common::mlp(ctx, w.conv, in.tokens, x.reshaped({tokens, c.joined_width()}), half,
              row_range(wide, 1, tokens));

  common::put_row(ctx, w.image_newline, row_range(wide, 0, 1));
  ops::linear(ctx, {.x = wide,
                    .weight = w.mlp,
                    .rows = rows.projected_rows,
                    .out = row_range(mixed, kNewline, 1 + tokens)});
  common::put_row(ctx, w.image_begin, row_range(mixed, kBegin, 1));
  common::put_row(ctx, w.image_end, row_range(mixed, kEnd, 1));
  common::norm(ctx, w.after_rms, mixed, rows.mixed_rows, mixed);
}

}  // namespace

void forward(ExecContext& ctx, const Config& c, const Weights& w, const common::GridInputs& in,
             const RowInputs& rows, TensorView out) {
  const std::int64_t tokens = out.shape[0];  // no more than there are rows
  const std::int64_t patches = tokens * c.grid.merge_area();
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

  // x = x + attention(LN1(x)); x = x + mlp(LN2(x))
  const common::AttendedRows attended{
      .sequences = {
          .cu_seqlens = in.cu_seqlens, .seqs = in.seqs, .max_seqlen = patches, .rows = in.patches}};
  common::add_blocks(ctx, w.blocks, attended, x);

  // out = rows of mixed in the order of the image
  const TensorView mixed = ctx.arena.tensor(out.dtype, {kNumSeparators + tokens, out.shape[1]});
  project(ctx, c, w.perceive, in, rows, x, mixed);
  ops::gather_rows(ctx, {.x = mixed, .index = rows.row_sources, .rows = rows.rows, .out = out});
}

}  // namespace fovea::hunyuan_vl
