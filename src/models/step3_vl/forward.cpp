// The vision tower of Step3-VL in the order of the data.
#include "models/step3_vl/forward.h"

#include <algorithm>

#include "ops/patch.h"
#include "ops/rows.h"

namespace fovea::step3_vl {

namespace {

/// Live counts of a chunk of views at each stage of the tower.
enum Stage : std::size_t { kLiveViews, kRows, kPatches, kLinePairs, kHalf, kTokens };

/// x = [class; class; class; class; conv(normalise(pixels))] + positions,
/// [views * (4 + grid^2), hidden_size]
void embed(ExecContext& ctx, const Tower& t, ConstTensorView pixels, ConstTensorView sources,
           const std::vector<LiveRows>& live, TensorView x) {
  const Arena::Scope scope(ctx.arena);
  const std::int64_t rows = sources.shape[0];
  const TensorView bytes = ctx.arena.tensor(x.dtype, {rows, t.weights.patch_embedding.in_features});
  const TensorView patches = ctx.arena.tensor(x.dtype, {rows, x.shape[1]});
  ops::patchify(ctx, {.pixels = pixels,
                      .sources = sources,
                      .table = t.weights.normalize.view(),
                      .patch_size = Config::kPatch,
                      .temporal_patch_size = media::kLevelBytes,
                      .rows = live[kPatches],
                      .out = bytes});
  ops::linear(
      ctx,
      {.x = bytes, .weight = t.weights.patch_embedding, .rows = live[kPatches], .out = patches});
  ops::copy_row_blocks(ctx, {.x = t.weights.class_rows.view(),
                             .x_block_rows = 0,
                             .count = Config::kClassRows,
                             .blocks = live[kLiveViews],
                             .out = x,
                             .out_block_rows = t.view.seq_rows()});
  ops::copy_row_blocks(ctx, {.x = patches,
                             .x_block_rows = t.view.patches(),
                             .count = t.view.patches(),
                             .blocks = live[kLiveViews],
                             .out = x,
                             .out_block_rows = t.view.seq_rows(),
                             .out_first = Config::kClassRows});
  ops::add_table(ctx, {.table = t.weights.positions[t.path].view(), .rows = live[kRows], .x = x});
}

/// x = x + LN1(out_proj(attention(qkv(x)))); x = x + LN2(fc2(quick_gelu(fc1(x))))
void add_layer(ExecContext& ctx, const Layer& layer, const blocks::AttendedRows& rows,
               TensorView x) {
  const Arena::Scope scope(ctx.arena);
  const TensorView branch = ctx.arena.tensor(x.dtype, x.shape);
  blocks::attend(ctx, layer.attn, rows, x, {}, branch);
  blocks::norm(ctx, layer.layer_norm1, branch, rows.live(), x, x);
  const TensorView wide = ctx.arena.tensor(x.dtype, {x.shape[0], layer.mlp.fc1.out_features});
  blocks::mlp(ctx, layer.mlp, rows.live(), x, wide, branch);
  blocks::norm(ctx, layer.layer_norm2, branch, rows.live(), x, x);
}

/// half = conv 2x2 of stride 2 (x without its class rows), [views * (grid / 2)^2,
/// output_hidden_size]
void halve(ExecContext& ctx, const Tower& t, const std::vector<LiveRows>& live, ConstTensorView x,
           TensorView half) {
  const Arena::Scope scope(ctx.arena);
  const std::int64_t side = t.view.half();
  const std::int64_t width = x.shape[1];
  const std::int64_t rows = half.shape[0];
  const TensorView grid = ctx.arena.tensor(x.dtype, {4 * rows, width});
  ops::copy_row_blocks(ctx, {.x = x,
                             .x_block_rows = t.view.seq_rows(),
                             .x_first = Config::kClassRows,
                             .count = t.view.patches(),
                             .blocks = live[kLiveViews],
                             .out = grid,
                             .out_block_rows = t.view.patches()});
  // Neighbours along x lie side by side already; those along y are one line of the grid apart.
  const TensorView pairs = grid.reshaped({2 * rows, 2 * width});
  const TensorView squares = ctx.arena.tensor(x.dtype, {rows, 4 * width});
  for (std::int64_t line = 0; line < 2; ++line) {
    ops::copy_row_blocks(ctx, {.x = pairs,
                               .x_block_rows = 2 * side,
                               .x_first = line * side,
                               .count = side,
                               .blocks = live[kLinePairs],
                               .out = squares,
                               .out_block_rows = side,
                               .out_column = line * 2 * width});
  }
  ops::linear(
      ctx, {.x = squares, .weight = t.weights.vit_downsampler, .rows = live[kHalf], .out = half});
}

/// out = projector(conv 3x3 of stride 2 (conv 2x2 of stride 2 (x))), [views * tokens,
/// text_hidden_size]
void project(ExecContext& ctx, const Tower& t, const std::vector<LiveRows>& live, ConstTensorView x,
             TensorView out) {
  const Arena::Scope scope(ctx.arena);
  const Weights& w = t.weights;
  const std::int64_t tokens = out.shape[0];
  const TensorView features =
      ctx.arena.tensor(x.dtype, {tokens, w.vit_large_projector.in_features});
  const TensorView half = ctx.arena.tensor(
      x.dtype,
      {tokens / t.view.tokens() * t.view.half() * t.view.half(), w.vit_downsampler.out_features});
  halve(ctx, t, live, x, half);
  blocks::conv3x3(ctx, w.vit_downsampler2, half, t.view.half(), live[kTokens], features);
  ops::linear(ctx,
              {.x = features, .weight = w.vit_large_projector, .rows = live[kTokens], .out = out});
}

/// The tower on a chunk of views. @param sources patch rows of the chunk. @param cu_seqlens of its
/// views. @param live of the chunk.
void run_chunk(ExecContext& ctx, const Tower& t, ConstTensorView pixels, ConstTensorView sources,
               ConstTensorView cu_seqlens, const std::vector<LiveRows>& live, TensorView out) {
  const Arena::Scope scope(ctx.arena);
  const std::int64_t views = sources.shape[0] / t.view.patches();
  const TensorView x =
      ctx.arena.tensor(out.dtype, {views * t.view.seq_rows(), t.config.hidden_size});
  embed(ctx, t, pixels, sources, live, x);
  const blocks::AttendedRows rows{.sequences = {.cu_seqlens = cu_seqlens,
                                                .seqs = live[kLiveViews],
                                                .max_seqlen = t.view.seq_rows(),
                                                .rows = live[kRows]}};
  for (const Layer& layer : t.weights.layers) add_layer(ctx, layer, rows, x);
  project(ctx, t, live, x, out);
}

}  // namespace

blocks::ViewLayout layout_of(const View& view) {
  constexpr std::int64_t kChunkRows = 16384;  // enough to fill any device
  return {.view = view,
          .seq_rows = view.seq_rows(),
          .stages = {},
          .views_per_chunk = kChunkRows / view.patches(),
          .chunk_stages = {1, view.seq_rows(), view.patches(), view.half(),
                           view.half() * view.half(), view.tokens()}};
}

void forward(ExecContext& ctx, const Tower& t, const blocks::ViewInputs& in, TensorView out) {
  const std::int64_t patches = t.view.patches();
  const std::int64_t tokens = t.view.tokens();
  const std::int64_t views = in.sources.shape[0] / patches;
  const std::int64_t step = layout_of(t.view).views_per_chunk;
  for (std::int64_t first = 0; first < views; first += step) {
    const std::int64_t count = std::min(step, views - first);
    // Sequences are counted from the first row of a chunk, so each takes the first offsets.
    const ConstTensorView cu_seqlens{in.cu_seqlens.data, in.cu_seqlens.dtype, {count + 1}};
    run_chunk(ctx, t, in.pixels, row_range(in.sources, first * patches, count * patches),
              cu_seqlens, in.chunks[static_cast<std::size_t>(first / step)],
              row_range(out, first * tokens, count * tokens));
  }
}

}  // namespace fovea::step3_vl
