// C-RADIO and the projector of Nemotron Omni in the order of the data.
#include <algorithm>

#include "fovea/tower/ops/linear.h"
#include "fovea/tower/ops/patch.h"
#include "fovea/tower/ops/rows.h"
#include "media/resize/resize_fine.h"
#include "models/nemotron_h_omni/model.h"

namespace fovea::nemotron_h_omni {

namespace {

/// levels = bytes of patches of one frame each, [patches, 3 * kLevelBytes * patch_size^2]
void read_levels(ExecContext& ctx, const Config& c, const Weights& w, const common::GridInputs& in,
                 ConstTensorView sources, LiveRows rows, TensorView levels) {
  ops::patchify(ctx, {.pixels = in.pixels,
                      .sources = sources,
                      .table = w.levels.view(),
                      .patch_size = c.grid.patch_size,
                      .temporal_patch_size = static_cast<std::int64_t>(media::kLevelBytes),
                      .rows = rows,
                      .out = levels});
}

/// images = embedder(patches) + positions, of all patches
/// videos = video_embedder(first | second) + positions, of those of videos, which come first
void embed_patches(ExecContext& ctx, const Config& c, const Weights& w, const Inputs& in,
                   TensorView images, TensorView videos) {
  const Arena::Scope scope(ctx.arena);
  const common::GridInputs& grid = in.grid;
  const auto& [first, second] = w.video_embedder;
  const TensorView levels =
      ctx.arena.tensor(images.dtype, {images.shape[0], w.embedder.in_features});
  read_levels(ctx, c, w, grid, grid.sources, grid.patches, levels);
  ops::linear(ctx, {.x = levels, .weight = w.embedder, .rows = grid.patches, .out = images});
  ops::linear(ctx, {.x = levels, .weight = first, .rows = in.of_videos, .out = videos});
  read_levels(ctx, c, w, grid, in.second, in.of_videos, levels);
  ops::linear(
      ctx,
      {.x = levels, .weight = second, .residual = videos, .rows = in.of_videos, .out = videos});
  const auto add_positions = [&](LiveRows rows, TensorView x) {
    ops::add_positions_half_pixel(ctx, {.table = w.position_table.view(),
                                        .positions = grid.positions,
                                        .table_height = c.position_side(),
                                        .table_width = c.position_side(),
                                        .rows = rows,
                                        .x = x});
  };
  add_positions(grid.patches, images);
  add_positions(in.of_videos, videos);
}

/// x = [class rows; embedded patches] of every sequence, [rows of sequences, hidden_size]
void make_sequences(ExecContext& ctx, const Config& c, const Weights& w, const Inputs& in,
                    std::int64_t num_patches, TensorView x) {
  const Arena::Scope scope(ctx.arena);
  const std::int64_t first = c.class_rows();
  const TensorView all = ctx.arena.tensor(x.dtype, {first + 2 * num_patches, c.hidden_size});
  embed_patches(ctx, c, w, in, row_range(all, first, num_patches),
                row_range(all, first + num_patches, num_patches));
  ops::copy_row_blocks(ctx, {.x = w.class_rows.view(),
                             .x_block_rows = 0,
                             .count = first,
                             .out = row_range(all, 0, first),
                             .out_block_rows = first});
  ops::gather_rows(ctx, {.x = all, .index = in.embedding, .rows = in.rows, .out = x});
}

}  // namespace

void forward(ExecContext& ctx, const Config& c, const Weights& w, const Inputs& in,
             TensorView out) {
  const std::int64_t tokens = out.shape[0];
  const std::int64_t patches = tokens * c.grid.merge_area();
  const std::int64_t rows = in.embedding.shape[0];
  const Arena::Scope scope(ctx.arena);

  // x = [class and register tokens; embedder(pixels) + positions]
  const TensorView x = ctx.arena.tensor(out.dtype, {rows, c.hidden_size});
  make_sequences(ctx, c, w, in, patches, x);

  // x = x + attention(norm1(x)); x = x + mlp(norm2(x))
  const common::AttendedRows attended{
      .sequences = {.cu_seqlens = in.cu_seqlens,
                    .seqs = in.grid.seqs,
                    .max_seqlen = std::min(rows, patches + c.class_rows()),
                    .rows = in.rows}};
  common::add_blocks(ctx, w.blocks, attended, x);

  // y = x without class and register tokens, [patches, hidden_size]
  const TensorView y = ctx.arena.tensor(out.dtype, {patches, c.hidden_size});
  ops::gather_rows(ctx, {.x = x, .index = in.patch_rows, .rows = in.grid.patches, .out = y});
  if (w.final_norm) common::norm(ctx, *w.final_norm, y, in.grid.patches, y);

  // out = fc2(relu(fc1(RMS(join(y))))^2), of 2 x 2 neighbouring patches
  const TensorView joined = y.reshaped({tokens, c.joined_width()});
  const TensorView wide = ctx.arena.tensor(out.dtype, {tokens, c.projector_hidden_size});
  common::norm(ctx, w.projector_norm, joined, in.grid.tokens, joined);
  common::mlp(ctx, w.projector, in.grid.tokens, joined, wide, out);
}

}  // namespace fovea::nemotron_h_omni
