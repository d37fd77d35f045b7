// DeepSeek-OCR's encoder in the order of the data: SAM with windows and relative positions, a neck
// and two strided convolutions, CLIP on the result, and one projection of both.
#include "models/deepseek_ocr/forward.h"

#include <algorithm>
#include <cmath>

#include "ops/grid.h"
#include "ops/patch.h"
#include "ops/rows.h"

namespace fovea::deepseek_ocr {

namespace {

/// Live counts of all views, and of one chunk of them on its way through SAM.
enum Stage : std::size_t { kViews, kClipRows, kTokens, kTokenRows };
enum ChunkStage : std::size_t { kChunkViews, kChunkPatches, kChunkHalf, kChunkFeatures };

/// x += proj(grid_attention(qkv(normed))); normed and x [views * grid^2, sam_width]
void add_grid_attention(ExecContext& ctx, const Tower& t, const SamBlock& block,
                        std::int64_t window, const std::vector<LiveRows>& live,
                        ConstTensorView normed, TensorView x) {
  const Arena::Scope scope(ctx.arena);
  const std::int64_t head_dim = block.attn.head_dim();
  const TensorView qkv = ctx.arena.tensor(x.dtype, {x.shape[0], 3 * x.shape[1]});
  const TensorView mixed = ctx.arena.tensor(x.dtype, x.shape);
  ops::linear(ctx,
              {.x = normed, .weight = block.attn.qkv, .rows = live[kChunkPatches], .out = qkv});
  ops::grid_attention(ctx, {.qkv = qkv,
                            .pad_qkv = block.qkv_bias.view(),
                            .rel_pos_h = block.rel_pos_h[t.path].view(),
                            .rel_pos_w = block.rel_pos_w[t.path].view(),
                            .height = t.view.grid(),
                            .width = t.view.grid(),
                            .window = window,
                            .num_heads = block.attn.num_heads,
                            .head_dim = head_dim,
                            .scale = 1.0f / std::sqrt(static_cast<float>(head_dim)),
                            .images = live[kChunkViews],
                            .out = mixed});
  ops::linear(ctx, {.x = mixed,
                    .weight = block.attn.proj,
                    .residual = x,
                    .rows = live[kChunkPatches],
                    .out = x});
}

/// x = x + attention(LN1(x)); x = x + lin2(gelu(lin1(LN2(x)))); x [views * grid^2, sam_width]
void add_sam_block(ExecContext& ctx, const Tower& t, std::int64_t layer,
                   const std::vector<LiveRows>& live, TensorView x) {
  const SamBlock& block = t.weights.sam.blocks[static_cast<std::size_t>(layer)];
  const std::int64_t window = t.config.is_global_block(layer) ? 0 : Config::kWindow;
  const Arena::Scope scope(ctx.arena);
  const TensorView normed = ctx.arena.tensor(x.dtype, x.shape);
  blocks::norm(ctx, block.norm1, x, live[kChunkPatches], normed);
  add_grid_attention(ctx, t, block, window, live, normed, x);
  blocks::norm(ctx, block.norm2, x, live[kChunkPatches], normed);
  blocks::add_mlp(ctx, block.mlp, live[kChunkPatches], normed, x);
}

/// features = net_3(net_2(LN(conv3x3(LN(conv1x1(x)))))), [views * tokens, feature_width]
void sam_neck(ExecContext& ctx, const Tower& t, const std::vector<LiveRows>& live,
              ConstTensorView x, TensorView features) {
  const Sam& w = t.weights.sam;
  const std::int64_t grid = t.view.grid();
  const std::int64_t views = x.shape[0] / t.view.patches();
  const Arena::Scope scope(ctx.arena);
  const auto tensor = [&](std::int64_t side, std::int64_t channels) {
    return ctx.arena.tensor(features.dtype, {views * side * side, channels});
  };
  const TensorView a = tensor(grid, Config::kNeckChannels);
  const TensorView b = tensor(grid, Config::kNeckChannels);
  const TensorView half = tensor(grid / 2, t.config.downsample_channels[0]);
  ops::linear(ctx, {.x = x, .weight = w.neck_0, .rows = live[kChunkPatches], .out = a});
  blocks::norm(ctx, w.neck_1, a, live[kChunkPatches], a);
  blocks::conv3x3(ctx, w.neck_2, a, grid, live[kChunkPatches], b);
  blocks::norm(ctx, w.neck_3, b, live[kChunkPatches], b);
  blocks::conv3x3(ctx, w.net_2, b, grid, live[kChunkHalf], half);
  blocks::conv3x3(ctx, w.net_3, half, grid / 2, live[kChunkFeatures], features);
}

/// SAM on a chunk of views. @param sources patch rows of the chunk. @param live of the chunk.
void sam(ExecContext& ctx, const Tower& t, ConstTensorView pixels, ConstTensorView sources,
         const std::vector<LiveRows>& live, TensorView features) {
  const Sam& w = t.weights.sam;
  const LiveRows rows = live[kChunkPatches];
  const Arena::Scope scope(ctx.arena);
  const TensorView x = ctx.arena.tensor(features.dtype, {sources.shape[0], t.config.sam_width});
  // x = conv(normalise(pixels)) + positions
  {
    const Arena::Scope inner(ctx.arena);
    const TensorView patches =
        ctx.arena.tensor(x.dtype, {x.shape[0], 3 * Config::kPatch * Config::kPatch});
    ops::patchify(ctx, {.pixels = pixels,
                        .sources = sources,
                        .table = t.weights.normalize.view(),
                        .patch_size = Config::kPatch,
                        .temporal_patch_size = 1,
                        .rows = rows,
                        .out = patches});
    ops::linear(ctx, {.x = patches, .weight = w.patch_embed, .rows = rows, .out = x});
  }
  ops::add_table(ctx, {.table = w.pos_embed[t.path].view(), .rows = rows, .x = x});
  for (std::int64_t layer = 0; layer < t.config.sam_layers; ++layer) {
    add_sam_block(ctx, t, layer, live, x);
  }
  sam_neck(ctx, t, live, x, features);
}

/// CLIP on SAM's features in place of patches; writes columns [0, clip_width) of `joined`.
void clip(ExecContext& ctx, const Tower& t, const blocks::ViewInputs& in, ConstTensorView features,
          TensorView joined) {
  const Clip& w = t.weights.clip;
  const std::int64_t tokens = t.view.tokens();
  const std::int64_t views = features.shape[0] / tokens;
  const LiveRows live_views = in.live[kViews];
  const LiveRows rows = in.live[kClipRows];
  const Arena::Scope scope(ctx.arena);
  const TensorView x = ctx.arena.tensor(joined.dtype, {views * (tokens + 1), t.config.clip_width});

  // x = pre_layrnorm([class_embedding; features] + position_embedding)
  ops::copy_row_blocks(ctx, {.x = w.class_embedding.view(),
                             .x_block_rows = 0,
                             .count = 1,
                             .blocks = live_views,
                             .out = x,
                             .out_block_rows = tokens + 1});
  ops::copy_row_blocks(ctx, {.x = features,
                             .x_block_rows = tokens,
                             .count = tokens,
                             .blocks = live_views,
                             .out = x,
                             .out_block_rows = tokens + 1,
                             .out_first = 1});
  ops::add_table(ctx, {.table = w.position_embedding[t.path].view(), .rows = rows, .x = x});
  blocks::norm(ctx, w.pre_layrnorm, x, rows, x);
  const blocks::AttendedRows attended{
      .sequences = {
          .cu_seqlens = in.cu_seqlens, .seqs = live_views, .max_seqlen = tokens + 1, .rows = rows}};
  for (const blocks::Block& layer : w.layers) blocks::add_block(ctx, layer, attended, x);

  // The class token has done its work.
  ops::copy_row_blocks(ctx, {.x = x,
                             .x_block_rows = tokens + 1,
                             .x_first = 1,
                             .count = tokens,
                             .blocks = live_views,
                             .out = joined,
                             .out_block_rows = tokens});
}

/// Every row of the token grid, followed by a newline row.
void add_newlines(ExecContext& ctx, const Tower& t, LiveRows rows, ConstTensorView projected,
                  TensorView out) {
  const std::int64_t side = t.view.tokens_side();
  ops::copy_row_blocks(ctx, {.x = projected,
                             .x_block_rows = side,
                             .count = side,
                             .blocks = rows,
                             .out = out,
                             .out_block_rows = side + 1});
  ops::copy_row_blocks(ctx, {.x = t.weights.image_newline.view(),
                             .x_block_rows = 0,
                             .count = 1,
                             .blocks = rows,
                             .out = out,
                             .out_block_rows = side + 1,
                             .out_first = side});
}

}  // namespace

blocks::ViewLayout layout_of(const View& view) {
  constexpr std::int64_t kChunkTokens = 16384;  // enough to fill any device
  const std::int64_t patches = view.patches();
  return {.view = view,
          .seq_rows = view.tokens() + 1,
          .stages = {1, view.tokens() + 1, view.tokens(), view.tokens_side()},
          .views_per_chunk = std::max<std::int64_t>(1, kChunkTokens / patches),
          .chunk_stages = {1, patches, patches / 4, patches / 16}};
}

void forward(ExecContext& ctx, const Tower& t, const blocks::ViewInputs& in, TensorView out) {
  const Arena::Scope scope(ctx.arena);
  const std::int64_t tokens = t.view.tokens();
  const std::int64_t patches = t.view.patches();
  const std::int64_t views = in.sources.shape[0] / patches;
  const std::int64_t step = layout_of(t.view).views_per_chunk;

  const TensorView features =
      ctx.arena.tensor(out.dtype, {views * tokens, t.config.feature_width()});
  for (std::int64_t first = 0; first < views; first += step) {
    const std::int64_t count = std::min(step, views - first);
    sam(ctx, t, in.pixels, row_range(in.sources, first * patches, count * patches),
        in.chunks[static_cast<std::size_t>(first / step)],
        row_range(features, first * tokens, count * tokens));
  }

  // out = projector([clip(features), features])
  const TensorView joined =
      ctx.arena.tensor(out.dtype, {views * tokens, t.config.projector_input_dim});
  clip(ctx, t, in, features, joined);
  ops::copy_row_blocks(ctx, {.x = features,
                             .x_block_rows = tokens,
                             .count = tokens,
                             .blocks = in.live[kViews],
                             .out = joined,
                             .out_block_rows = tokens,
                             .out_column = t.config.clip_width});
  const bool newlines = t.path == kGlobal;
  const TensorView projected =
      newlines ? ctx.arena.tensor(out.dtype, {views * tokens, t.config.n_embed}) : out;
  ops::linear(
      ctx,
      {.x = joined, .weight = t.weights.projector, .rows = in.live[kTokens], .out = projected});
  if (newlines) add_newlines(ctx, t, in.live[kTokenRows], projected, out);
}

}  // namespace fovea::deepseek_ocr
