// DeepSeek-OCR's encoder in the order of the data: SAM with windows and relative positions, a neck
// and two strided convolutions, CLIP on the result, and one projection of both.
#include "models/deepseek_ocr/forward.h"

#include <algorithm>
#include <cmath>

#include "ops/attention.h"
#include "ops/grid.h"
#include "ops/norm.h"
#include "ops/patch.h"
#include "ops/rows.h"

namespace fovea::deepseek_ocr {

namespace {

constexpr float kSamEpsilon = 1e-6f;   // fixed in the vendor's code
constexpr float kClipEpsilon = 1e-5f;  // fixed in the vendor's code

void layer_norm(ExecContext& ctx, const blocks::NormWeights& w, float epsilon, ConstTensorView x,
                LiveRows rows, TensorView out) {
  ops::layer_norm(ctx, {.x = x,
                        .weight = w.weight.view(),
                        .bias = w.bias.view(),
                        .epsilon = epsilon,
                        .rows = rows,
                        .out = out});
}

float attention_scale(std::int64_t head_dim) {
  return 1.0f / std::sqrt(static_cast<float>(head_dim));
}

/// Rows [first, first + count) of a matrix.
template <class View>
View row_range(const View& matrix, std::int64_t first, std::int64_t count) {
  const auto row_bytes = static_cast<std::size_t>(matrix.shape[1]) * size_of(matrix.dtype);
  return {matrix.data + static_cast<std::size_t>(first) * row_bytes,
          matrix.dtype,
          {count, matrix.shape[1]}};
}

/// One chunk of views on its way through SAM.
struct SamPass {
  ExecContext& ctx;
  const Config& config;
  const SamWeights& weights;
  std::size_t path;
  const ViewGeometry& view;
  ChunkLive live;
};

/// x += proj(grid_attention(qkv(normed))); normed and x [views * grid^2, sam_width]
void sam_attention(const SamPass& s, const SamBlockWeights& w, bool global, ConstTensorView normed,
                   TensorView x) {
  const Config& c = s.config;
  const TensorView qkv = s.ctx.arena.tensor(x.dtype, {x.shape[0], 3 * c.sam_width});
  const TensorView mixed = s.ctx.arena.tensor(x.dtype, x.shape);
  ops::linear(s.ctx, {.x = normed, .weight = w.qkv, .rows = s.live.grid, .out = qkv});
  ops::grid_attention(s.ctx, {.qkv = qkv,
                              .pad_qkv = w.qkv_bias.view(),
                              .rel_pos_h = w.rel_pos_h[s.path].view(),
                              .rel_pos_w = w.rel_pos_w[s.path].view(),
                              .height = s.view.grid(),
                              .width = s.view.grid(),
                              .window = global ? 0 : Config::kWindow,
                              .num_heads = c.sam_heads,
                              .head_dim = c.sam_head_dim(),
                              .scale = attention_scale(c.sam_head_dim()),
                              .images = s.live.views,
                              .out = mixed});
  ops::linear(s.ctx, {.x = mixed, .weight = w.proj, .residual = x, .rows = s.live.grid, .out = x});
}

/// One pre-norm block; x [views * grid^2, sam_width] is updated in place.
void sam_block(const SamPass& s, std::int64_t layer, TensorView x) {
  const SamBlockWeights& w = s.weights.blocks[static_cast<std::size_t>(layer)];
  const Arena::Scope scope(s.ctx.arena);
  const TensorView normed = s.ctx.arena.tensor(x.dtype, x.shape);

  // x = x + attention(LN1(x))
  {
    const Arena::Scope inner(s.ctx.arena);
    layer_norm(s.ctx, w.norm1, kSamEpsilon, x, s.live.grid, normed);
    sam_attention(s, w, s.config.is_global_block(layer), normed, x);
  }
  // x = x + lin2(gelu(lin1(LN2(x))))
  layer_norm(s.ctx, w.norm2, kSamEpsilon, x, s.live.grid, normed);
  const TensorView wide =
      s.ctx.arena.tensor(x.dtype, {x.shape[0], Config::kMlpRatio * s.config.sam_width});
  ops::linear(s.ctx, {.x = normed,
                      .weight = w.lin1,
                      .activation = ops::Activation::kGeluErf,
                      .rows = s.live.grid,
                      .out = wide});
  ops::linear(s.ctx, {.x = wide, .weight = w.lin2, .residual = x, .rows = s.live.grid, .out = x});
}

/// out = conv3x3(x), stride 1 or 2; x [views * side^2, channels]
void conv3x3(const SamPass& s, const ops::PackedLinear& w, ConstTensorView x, std::int64_t side,
             std::int64_t stride, LiveRows rows, TensorView out) {
  const Arena::Scope scope(s.ctx.arena);
  const TensorView columns = s.ctx.arena.tensor(out.dtype, {out.shape[0], 9 * x.shape[1]});
  ops::im2col_3x3(
      s.ctx,
      {.x = x, .height = side, .width = side, .stride = stride, .rows = rows, .out = columns});
  ops::linear(s.ctx, {.x = columns, .weight = w, .rows = rows, .out = out});
}

/// features = net_3(net_2(LN(conv3x3(LN(conv1x1(x)))))), [views * tokens, feature_width]
void sam_neck(const SamPass& s, ConstTensorView x, TensorView features) {
  const std::int64_t grid = s.view.grid();
  const std::int64_t views = x.shape[0] / (grid * grid);
  const Arena::Scope scope(s.ctx.arena);
  const auto tensor = [&](std::int64_t side, std::int64_t channels) {
    return s.ctx.arena.tensor(features.dtype, {views * side * side, channels});
  };
  const TensorView a = tensor(grid, Config::kNeckChannels);
  const TensorView b = tensor(grid, Config::kNeckChannels);
  const TensorView half = tensor(grid / 2, s.config.downsample_channels[0]);
  ops::linear(s.ctx, {.x = x, .weight = s.weights.neck_0, .rows = s.live.grid, .out = a});
  layer_norm(s.ctx, s.weights.neck_1, kSamEpsilon, a, s.live.grid, a);
  conv3x3(s, s.weights.neck_2, a, grid, 1, s.live.grid, b);
  layer_norm(s.ctx, s.weights.neck_3, kSamEpsilon, b, s.live.grid, b);
  conv3x3(s, s.weights.net_2, b, grid, 2, s.live.half, half);
  conv3x3(s, s.weights.net_3, half, grid / 2, 2, s.live.features, features);
}

/// SAM on a chunk of views. @param sources patch rows of the chunk.
void sam(const SamPass& s, ConstTensorView pixels, ConstTensorView sources,
         ConstTensorView normalize_table, TensorView features) {
  const Arena::Scope scope(s.ctx.arena);
  const std::int64_t rows = sources.shape[0];
  const TensorView x = s.ctx.arena.tensor(features.dtype, {rows, s.config.sam_width});
  {
    const Arena::Scope inner(s.ctx.arena);
    const TensorView patches =
        s.ctx.arena.tensor(x.dtype, {rows, 3 * Config::kPatch * Config::kPatch});
    ops::patchify(s.ctx, {.pixels = pixels,
                          .sources = sources,
                          .table = normalize_table,
                          .patch_size = Config::kPatch,
                          .temporal_patch_size = 1,
                          .rows = s.live.grid,
                          .out = patches});
    ops::linear(s.ctx,
                {.x = patches, .weight = s.weights.patch_embed, .rows = s.live.grid, .out = x});
  }
  ops::add_table(s.ctx, {.table = s.weights.pos_embed[s.path].view(), .rows = s.live.grid, .x = x});
  for (std::int64_t layer = 0; layer < s.config.sam_layers; ++layer) sam_block(s, layer, x);
  sam_neck(s, x, features);
}

/// One pre-norm layer; x [views * (tokens + 1), clip_width] is updated in place.
void clip_layer(ExecContext& ctx, const Config& c, const ClipLayerWeights& w,
                std::int64_t max_seqlen, const Inputs& in, TensorView x) {
  const Arena::Scope scope(ctx.arena);
  const std::int64_t rows = x.shape[0];
  const TensorView normed = ctx.arena.tensor(x.dtype, x.shape);

  // h = x + out_proj(attention(LN1(x)))
  {
    const Arena::Scope inner(ctx.arena);
    const TensorView qkv = ctx.arena.tensor(x.dtype, {rows, 3 * c.clip_width});
    const TensorView mixed = ctx.arena.tensor(x.dtype, x.shape);
    layer_norm(ctx, w.layer_norm1, kClipEpsilon, x, in.clip_rows, normed);
    ops::attention(ctx, {.x = normed,
                         .projection = &w.qkv_proj,
                         .qkv = qkv,
                         .cu_seqlens = in.cu_seqlens,
                         .seqs = in.views,
                         .num_heads = c.clip_heads,
                         .head_dim = c.clip_head_dim(),
                         .scale = attention_scale(c.clip_head_dim()),
                         .max_seqlen = max_seqlen,
                         .rows = in.clip_rows,
                         .out = mixed});
    ops::linear(ctx,
                {.x = mixed, .weight = w.out_proj, .residual = x, .rows = in.clip_rows, .out = x});
  }
  // x = h + fc2(quick_gelu(fc1(LN2(h))))
  layer_norm(ctx, w.layer_norm2, kClipEpsilon, x, in.clip_rows, normed);
  const TensorView wide = ctx.arena.tensor(x.dtype, {rows, Config::kMlpRatio * c.clip_width});
  ops::linear(ctx, {.x = normed,
                    .weight = w.fc1,
                    .activation = ops::Activation::kQuickGelu,
                    .rows = in.clip_rows,
                    .out = wide});
  ops::linear(ctx, {.x = wide, .weight = w.fc2, .residual = x, .rows = in.clip_rows, .out = x});
}

/// CLIP on SAM's features in place of patches; writes columns [0, clip_width) of `joined`.
void clip(ExecContext& ctx, const Config& c, const ClipWeights& w, std::size_t path,
          const ViewGeometry& view, const Inputs& in, ConstTensorView features, TensorView joined) {
  const std::int64_t tokens = view.tokens();
  const std::int64_t views = features.shape[0] / tokens;
  const Arena::Scope scope(ctx.arena);
  const TensorView x = ctx.arena.tensor(joined.dtype, {views * (tokens + 1), c.clip_width});

  // x = pre_layrnorm([class_embedding; features] + position_embedding)
  ops::copy_row_blocks(ctx, {.x = w.class_embedding.view(),
                             .x_block_rows = 0,
                             .count = 1,
                             .blocks = in.views,
                             .out = x,
                             .out_block_rows = tokens + 1});
  ops::copy_row_blocks(ctx, {.x = features,
                             .x_block_rows = tokens,
                             .count = tokens,
                             .blocks = in.views,
                             .out = x,
                             .out_block_rows = tokens + 1,
                             .out_first = 1});
  ops::add_table(ctx, {.table = w.position_embedding[path].view(), .rows = in.clip_rows, .x = x});
  layer_norm(ctx, w.pre_layrnorm, kClipEpsilon, x, in.clip_rows, x);
  for (const ClipLayerWeights& layer : w.layers) clip_layer(ctx, c, layer, tokens + 1, in, x);

  // The class token has done its work.
  ops::copy_row_blocks(ctx, {.x = x,
                             .x_block_rows = tokens + 1,
                             .x_first = 1,
                             .count = tokens,
                             .blocks = in.views,
                             .out = joined,
                             .out_block_rows = tokens});
}

}  // namespace

std::int64_t views_per_chunk(const ViewGeometry& view) {
  constexpr std::int64_t kChunkTokens = 16384;
  return std::max<std::int64_t>(1, kChunkTokens / (view.grid() * view.grid()));
}

void forward(ExecContext& ctx, const Config& c, const Weights& w, std::size_t path,
             const ViewGeometry& view, ConstTensorView normalize_table, const Inputs& in,
             bool newlines, TensorView out) {
  const Arena::Scope scope(ctx.arena);
  const std::int64_t side = view.tokens_side();
  const std::int64_t tokens = view.tokens();
  const std::int64_t grid_rows = view.grid() * view.grid();
  const std::int64_t views = in.sources.shape[0] / grid_rows;

  const TensorView features = ctx.arena.tensor(out.dtype, {views * tokens, c.feature_width()});
  const std::int64_t step = views_per_chunk(view);
  for (std::int64_t first = 0; first < views; first += step) {
    const std::int64_t count = std::min(step, views - first);
    const SamPass pass{ctx,  c,    w.sam,
                       path, view, in.chunks[static_cast<std::size_t>(first / step)]};
    sam(pass, in.pixels, row_range(in.sources, first * grid_rows, count * grid_rows),
        normalize_table, row_range(features, first * tokens, count * tokens));
  }

  // out = projector([clip(features), features])
  const TensorView joined = ctx.arena.tensor(out.dtype, {views * tokens, c.projector_input_dim});
  clip(ctx, c, w.clip, path, view, in, features, joined);
  ops::copy_row_blocks(ctx, {.x = features,
                             .x_block_rows = tokens,
                             .count = tokens,
                             .blocks = in.views,
                             .out = joined,
                             .out_block_rows = tokens,
                             .out_column = c.clip_width});
  if (!newlines) {
    ops::linear(ctx, {.x = joined, .weight = w.projector, .rows = in.tokens, .out = out});
    return;
  }
  // Every row of the token grid ends with a newline row.
  const TensorView projected = ctx.arena.tensor(out.dtype, {views * tokens, c.n_embed});
  ops::linear(ctx, {.x = joined, .weight = w.projector, .rows = in.tokens, .out = projected});
  ops::copy_row_blocks(ctx, {.x = projected,
                             .x_block_rows = side,
                             .count = side,
                             .blocks = in.grid_rows,
                             .out = out,
                             .out_block_rows = side + 1});
  ops::copy_row_blocks(ctx, {.x = w.image_newline.view(),
                             .x_block_rows = 0,
                             .count = 1,
                             .blocks = in.grid_rows,
                             .out = out,
                             .out_block_rows = side + 1,
                             .out_first = side});
}

}  // namespace fovea::deepseek_ocr
