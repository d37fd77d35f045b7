// The tower of Molmo2 and its adapter in the order of the data.
#include <algorithm>
#include <cmath>

#include "fovea/tower/ops/cross_attention.h"
#include "fovea/tower/ops/linear.h"
#include "fovea/tower/ops/patch.h"
#include "fovea/tower/ops/rows.h"
#include "models/common/views/layers.h"
#include "models/molmo2/model.h"

namespace fovea::molmo2 {

namespace {

/// x = patch_embedding(pixels), whose values are those of frames, then those of images.
/// @param scaled patches of images, which come first.
void embed(ExecContext& ctx, const Weights& w, const common::ViewBatch& in, LiveRows scaled,
           TensorView x) {
  const Arena::Scope scope(ctx.arena);
  const ops::PackedLinear& proj = w.tower.patch_embedding.proj;
  const TensorView values = ctx.arena.tensor(x.dtype, {x.shape[0], proj.in_features});
  const auto read = [&](const Tensor& table, LiveRows rows) {
    ops::patchify(ctx, {.pixels = in.pixels,
                        .sources = in.sources,
                        .table = table.view(),
                        .patch_size = in.view.patch_px,
                        .temporal_patch_size = 1,
                        .rows = rows,
                        .out = values});
  };
  read(w.frame_bytes, in.patches);
  read(w.tower.patch_embedding.normalize, scaled);
  ops::linear(ctx, {.x = values, .weight = proj, .rows = in.patches, .out = x});
}

/// features = x behind each of vit_layers, side by side, [views * patches, feature_width]
void encode_views(ExecContext& ctx, const Config& c, const Weights& w, const Inputs& in,
                  TensorView features) {
  const common::SiglipTower& tower = w.tower;
  std::vector<std::int64_t> taps = c.vit_layers;
  std::ranges::sort(taps);
  for (const common::ViewBatch& chunk : in.views.chunks) {
    const Arena::Scope scope(ctx.arena);
    const std::int64_t patches = chunk.sequence.patches;
    const TensorView kept = row_range(features, chunk.first * patches, chunk.count * patches);
    // x = linear(normalise(pixels)) + positions
    const TensorView x = ctx.arena.tensor(features.dtype, {kept.shape[0], c.tower.hidden_size});
    embed(ctx, w, chunk, {in.scaled.as<std::int32_t>() + chunk.first}, x);
    ops::add_table(ctx, {.table = tower.position_embedding.view(), .rows = chunk.patches, .x = x});
    // x = x + attention(LN(x)); x = x + mlp(LN(x))
    common::add_blocks(ctx, tower.blocks, common::attended_rows(chunk), x, taps,
                       [&](std::size_t tap, TensorView behind) {
                         const auto slot = std::ranges::find(c.vit_layers, taps[tap]);
                         ops::copy_row_blocks(ctx, {.x = behind,
                                                    .x_block_rows = 1,
                                                    .count = 1,
                                                    .blocks = chunk.patches,
                                                    .out = kept,
                                                    .out_block_rows = 1,
                                                    .out_column = (slot - c.vit_layers.begin()) *
                                                                  c.tower.hidden_size});
                       });
  }
}

/// out = wo(attention(wq(mean(pooled)), wk(pooled), wv(pooled))), the patches of every token.
/// @param pooled [keys, feature_width]. @param out [tokens, hidden_size].
void pool(ExecContext& ctx, const Config& c, const Pooling& w, const Inputs& in,
          ConstTensorView pooled, TensorView out) {
  const Arena::Scope scope(ctx.arena);
  const std::int64_t tokens = out.shape[0];
  const TensorView mean = ctx.arena.tensor(out.dtype, {tokens, c.feature_width()});
  const TensorView q = ctx.arena.tensor(out.dtype, out.shape);
  const TensorView kv = ctx.arena.tensor(out.dtype, {pooled.shape[0], 2 * c.tower.hidden_size});
  const TensorView mixed = ctx.arena.tensor(out.dtype, out.shape);
  ops::mean_row_blocks(ctx, {.x = pooled,
                             .block_rows = in.most_keys,
                             .blocks = in.tokens,
                             .out = mean,
                             .runs = in.means});
  ops::linear(ctx, {.x = mean, .weight = w.wq, .rows = in.tokens, .out = q});
  ops::linear(ctx, {.x = pooled, .weight = w.wkv, .rows = in.num_keys, .out = kv});
  ops::cross_attention(ctx, {.q = q,
                             .kv = kv,
                             .cu_queries = in.cu_queries,
                             .cu_keys = in.cu_keys,
                             .seqs = in.tokens,
                             .num_heads = c.adapter_heads,
                             .head_dim = c.adapter_head_dim(),
                             .scale = 1.0f / std::sqrt(static_cast<float>(c.adapter_head_dim())),
                             .out = mixed});
  ops::linear(ctx, {.x = mixed, .weight = w.wo, .rows = in.tokens, .out = out});
}

}  // namespace

void forward(ExecContext& ctx, const Config& c, const Weights& w, const Inputs& in,
             TensorView out) {
  const std::int64_t tokens = out.shape[0];
  const std::int64_t patches = in.keys.shape[0];
  const Arena::Scope scope(ctx.arena);

  const TensorView features = ctx.arena.tensor(out.dtype, {patches, c.feature_width()});
  encode_views(ctx, c, w, in, features);

  // pooled = the patches of every token, [keys, feature_width]
  const TensorView pooled = ctx.arena.tensor(out.dtype, features.shape);
  ops::gather_rows(ctx, {.x = features, .index = in.keys, .rows = in.num_keys, .out = pooled});
  const TensorView y = ctx.arena.tensor(out.dtype, {tokens, c.tower.hidden_size});
  pool(ctx, c, w.pooling, in, pooled, y);

  // out = w2(silu(w1(y)) * w3(y))
  common::mlp(ctx, w.projector, in.tokens, y, out);
}

}  // namespace fovea::molmo2
