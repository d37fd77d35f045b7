// DeepSeek-OCR's encoder in the order of the data: SAM with windows and relative positions, a neck
// and two strided convolutions, CLIP on the result, and one projection of both.
#include "models/deepseek_ocr/model.h"

#include <algorithm>
#include <cmath>

#include "fovea/tower/ops/grid.h"
#include "fovea/tower/ops/rows.h"
#include "models/common/views/layers.h"

namespace fovea::deepseek_ocr {

namespace {

/// Further live counts of all views, and of one chunk of them on its way through SAM.
enum Stage : std::size_t { kTokens, kTokenRows };
enum ChunkStage : std::size_t { kChunkHalf, kChunkFeatures };

/// x += proj(grid_attention(qkv(normed))); normed and x [views * grid^2, sam_width]
void add_grid_attention(ExecContext& ctx, const Tower& t, const SamBlock& block,
                        std::int64_t window, const common::ViewBatch& in, ConstTensorView normed,
                        TensorView x) {
  const Arena::Scope scope(ctx.arena);
  const std::int64_t head_dim = block.attn.head_dim();
  const TensorView qkv = ctx.arena.tensor(x.dtype, {x.shape[0], 3 * x.shape[1]});
  const TensorView mixed = ctx.arena.tensor(x.dtype, x.shape);
  ops::linear(ctx, {.x = normed, .weight = block.attn.qkv, .rows = in.patches, .out = qkv});
  ops::grid_attention(ctx, {.qkv = qkv,
                            .pad_qkv = block.qkv_bias.view(),
                            .rel_pos_h = block.rel_pos_h[t.path].view(),
                            .rel_pos_w = block.rel_pos_w[t.path].view(),
                            .height = in.view.grid(),
                            .width = in.view.grid(),
                            .window = window,
                            .num_heads = block.attn.num_heads,
                            .head_dim = head_dim,
                            .scale = 1.0f / std::sqrt(static_cast<float>(head_dim)),
                            .images = in.views,
                            .out = mixed});
  ops::linear(ctx,
              {.x = mixed, .weight = block.attn.proj, .residual = x, .rows = in.patches, .out = x});
}

/// x = x + attention(LN1(x)); x = x + lin2(gelu(lin1(LN2(x)))); x [views * grid^2, sam_width]
void add_sam_block(ExecContext& ctx, const Tower& t, std::int64_t layer,
                   const common::ViewBatch& in, TensorView x) {
  const SamBlock& block = t.weights.sam.blocks[static_cast<std::size_t>(layer)];
  const std::int64_t window = t.config.is_global_block(layer) ? 0 : Config::kWindow;
  const Arena::Scope scope(ctx.arena);
  const TensorView normed = ctx.arena.tensor(x.dtype, x.shape);
  common::norm(ctx, block.norm1, x, in.patches, normed);
  add_grid_attention(ctx, t, block, window, in, normed, x);
  common::norm(ctx, block.norm2, x, in.patches, normed);
  common::add_mlp(ctx, block.mlp, in.patches, normed, x);
}

/// features = net_3(net_2(LN(conv3x3(LN(conv1x1(x)))))), [views * tokens, feature_width]
void sam_neck(ExecContext& ctx, const Tower& t, const common::ViewBatch& in, ConstTensorView x,
              TensorView features) {
  const Sam& w = t.weights.sam;
  const std::int64_t grid = in.view.grid();
  const Arena::Scope scope(ctx.arena);
  const auto tensor = [&](std::int64_t side, std::int64_t channels) {
    return ctx.arena.tensor(features.dtype, {in.count * side * side, channels});
  };
  const TensorView a = tensor(grid, Config::kNeckChannels);
  const TensorView b = tensor(grid, Config::kNeckChannels);
  const TensorView half = tensor(grid / 2, t.config.downsample_channels[0]);
  ops::linear(ctx, {.x = x, .weight = w.neck_0, .rows = in.patches, .out = a});
  common::norm(ctx, w.neck_1, a, in.patches, a);
  common::conv3x3(ctx, w.neck_2, a, grid, in.patches, b);
  common::norm(ctx, w.neck_3, b, in.patches, b);
  common::conv3x3(ctx, w.net_2, b, grid, in.stages[kChunkHalf], half);
  common::conv3x3(ctx, w.net_3, half, grid / 2, in.stages[kChunkFeatures], features);
}

/// SAM on a chunk of views.
void sam(ExecContext& ctx, const Tower& t, const common::ViewBatch& in, TensorView features) {
  const Sam& w = t.weights.sam;
  const Arena::Scope scope(ctx.arena);
  // x = conv(normalise(pixels)) + positions
  const TensorView x = ctx.arena.tensor(features.dtype, {in.sources.shape[0], t.config.sam_width});
  common::embed_patches(ctx, in, w.patch_embed, x);
  ops::add_table(ctx, {.table = w.pos_embed[t.path].view(), .rows = in.patches, .x = x});
  for (std::int64_t layer = 0; layer < t.config.sam_layers; ++layer) {
    add_sam_block(ctx, t, layer, in, x);
  }
  sam_neck(ctx, t, in, x, features);
}

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
  constexpr std::int64_t kChunkTokens = 16384;  // enough to fill any device
  const std::int64_t patches = view.patches();
  return {.view = view,
          .sequence = {.patches = view.tokens()},
          .tokens = view.tokens() + (path == kGlobal ? view.tokens_side() : 0),
          .stages = {view.tokens(), view.tokens_side()},
          .views_per_chunk = std::max<std::int64_t>(1, kChunkTokens / patches),
          .chunk_stages = {patches / 4, patches / 16}};
}

void forward(ExecContext& ctx, const Tower& t, const common::ViewInputs& in, TensorView out) {
  const Arena::Scope scope(ctx.arena);
  const common::ViewBatch& all = in.all;
  const std::int64_t tokens = all.view.tokens();
  const std::int64_t rows = all.count * tokens;
  const TensorView features = ctx.arena.tensor(out.dtype, {rows, t.config.feature_width()});
  for (const common::ViewBatch& chunk : in.chunks) {
    sam(ctx, t, chunk, row_range(features, chunk.first * tokens, chunk.count * tokens));
  }

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
