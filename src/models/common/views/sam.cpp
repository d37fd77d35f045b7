// SAM in the order of the data, and its tensors. Tables of positions are resized once, for all
// sizes of views.
#include "models/common/views/sam.h"

#include <algorithm>
#include <cmath>

#include "core/check.h"
#include "fovea/tower/ops/grid.h"
#include "fovea/tower/ops/rows.h"
#include "models/common/config_reader.h"
#include "models/common/position_table.h"
#include "models/common/views/layers.h"

namespace fovea::common {

namespace {

using Bias = WeightLoader::Bias;

constexpr float kNeckEpsilon = 1e-6f;  // fixed in the references

/// Further live counts of a chunk of views.
enum ChunkStage : std::size_t { kChunkHalf, kChunkFeatures };

/// One size of views, and the weights for it.
struct SizedSam {
  const SamConfig& config;
  const Sam& weights;
  std::size_t view;
};

/// x += proj(grid_attention(qkv(normed))); normed and x [views * grid^2, width]
void add_grid_attention(ExecContext& ctx, const SizedSam& t, const SamBlock& block,
                        std::int64_t window, const ViewBatch& in, ConstTensorView normed,
                        TensorView x) {
  const Arena::Scope scope(ctx.arena);
  const std::int64_t head_dim = block.attn.head_dim();
  const TensorView qkv = ctx.arena.tensor(x.dtype, {x.shape[0], 3 * x.shape[1]});
  const TensorView mixed = ctx.arena.tensor(x.dtype, x.shape);
  ops::linear(ctx, {.x = normed, .weight = block.attn.qkv, .rows = in.patches, .out = qkv});
  ops::grid_attention(ctx, {.qkv = qkv,
                            .pad_qkv = block.qkv_bias.view(),
                            .rel_pos_h = block.rel_pos_h[t.view].view(),
                            .rel_pos_w = block.rel_pos_w[t.view].view(),
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

/// x = x + attention(LN1(x)); x = x + lin2(act(lin1(LN2(x)))); x [views * grid^2, width]
void add_sam_block(ExecContext& ctx, const SizedSam& t, std::int64_t layer, const ViewBatch& in,
                   TensorView x) {
  const SamBlock& block = t.weights.blocks[static_cast<std::size_t>(layer)];
  const std::int64_t window = t.config.is_global_block(layer) ? 0 : t.config.window;
  const Arena::Scope scope(ctx.arena);
  const TensorView normed = ctx.arena.tensor(x.dtype, x.shape);
  norm(ctx, block.norm1, x, in.patches, normed);
  add_grid_attention(ctx, t, block, window, in, normed, x);
  norm(ctx, block.norm2, x, in.patches, normed);
  add_mlp(ctx, block.mlp, in.patches, normed, x);
}

/// features = net_3(net_2(LN(conv3x3(LN(conv1x1(x)))))), [views * tokens, feature_width]
void sam_neck(ExecContext& ctx, const SizedSam& t, const ViewBatch& in, ConstTensorView x,
              TensorView features) {
  const Sam& w = t.weights;
  const std::int64_t grid = in.view.grid();
  const Arena::Scope scope(ctx.arena);
  const auto tensor = [&](std::int64_t side, std::int64_t channels) {
    return ctx.arena.tensor(features.dtype, {in.count * side * side, channels});
  };
  const TensorView a = tensor(grid, t.config.neck_channels);
  const TensorView b = tensor(grid, t.config.neck_channels);
  const TensorView half = tensor(grid / 2, t.config.downsample_channels[0]);
  ops::linear(ctx, {.x = x, .weight = w.neck_0, .rows = in.patches, .out = a});
  norm(ctx, w.neck_1, a, in.patches, a);
  conv3x3(ctx, w.neck_2, a, grid, in.patches, b);
  norm(ctx, w.neck_3, b, in.patches, b);
  conv3x3(ctx, w.net_2, b, grid, in.stages[kChunkHalf], half);
  conv3x3(ctx, w.net_3, half, grid / 2, in.stages[kChunkFeatures], features);
}

/// SAM on a chunk of views.
void run_chunk(ExecContext& ctx, const SizedSam& t, const ViewBatch& in, TensorView features) {
  const Arena::Scope scope(ctx.arena);
  // x = conv(normalise(pixels)) + positions
  const TensorView x = ctx.arena.tensor(features.dtype, {in.sources.shape[0], t.config.width});
  embed_patches(ctx, in, t.weights.patch_embed, x);
  ops::add_table(ctx, {.table = t.weights.pos_embed[t.view].view(), .rows = in.patches, .x = x});
  for (std::int64_t layer = 0; layer < t.config.layers; ++layer)
    add_sam_block(ctx, t, layer, in, x);
  sam_neck(ctx, t, in, x, features);
}

SamBlock load_sam_block(WeightLoader& loader, const SamConfig& c, std::int64_t layer,
                        std::span<const SquareView> views) {
  const std::string name = cat("sam_model.blocks.", layer);
  const auto epsilon = static_cast<float>(c.layer_norm_eps);
  const std::int64_t side = c.is_global_block(layer) ? c.grid : c.window;
  const auto relative = [&](const std::string& axis) {
    std::vector<Tensor> tables;
    for (const SquareView& view : views) {
      const std::int64_t grid = c.is_global_block(layer) ? view.grid() : side;
      const std::int64_t rows = 2 * grid - 1;
      tables.push_back(loader.f32_from(cat(name, ".attn.", axis), {2 * side - 1, c.head_dim()},
                                       {rows, c.head_dim()}, [&](std::span<const float> table) {
                                         return resize_relative_table(table, 2 * side - 1, rows,
                                                                      c.head_dim());
                                       }));
    }
    return tables;
  };
  return {.norm1 = loader.layer_norm(name + ".norm1", c.width, epsilon),
          .norm2 = loader.layer_norm(name + ".norm2", c.width, epsilon),
          .attn = {.qkv = loader.linear(name + ".attn.qkv", 3 * c.width, {c.width}),
                   .proj = loader.linear(name + ".attn.proj", c.width, {c.width}),
                   .num_heads = c.heads},
          .mlp = {.fc1 = loader.linear(name + ".mlp.lin1", c.mlp_width, {c.width}),
                  .fc2 = loader.linear(name + ".mlp.lin2", c.width, {c.mlp_width}),
                  .activation = c.hidden_act},
          .qkv_bias = loader.f32(name + ".attn.qkv.bias", {3 * c.width}),
          .rel_pos_h = relative("rel_pos_h"),
          .rel_pos_w = relative("rel_pos_w")};
}

void load_neck(WeightLoader& loader, const SamConfig& c, Sam& w) {
  const std::int64_t neck = c.neck_channels;
  const auto& [half, features] = c.downsample_channels;
  w.neck_0 = loader.linear("sam_model.neck.0", neck, {c.width, 1, 1}, Bias::kNo);
  w.neck_1 = loader.layer_norm("sam_model.neck.1", neck, kNeckEpsilon);
  w.neck_2 = loader.conv3x3("sam_model.neck.2", neck, neck, 1, Bias::kNo);
  w.neck_3 = loader.layer_norm("sam_model.neck.3", neck, kNeckEpsilon);
  w.net_2 = loader.conv3x3("sam_model.net_2", half, neck, 2, Bias::kNo);
  w.net_3 = loader.conv3x3("sam_model.net_3", features, half, 2, Bias::kNo);
}

}  // namespace

bool SamConfig::is_global_block(std::int64_t layer) const {
  return std::ranges::find(global_attn_indexes, layer) != global_attn_indexes.end();
}

void read_sam(const JsonView& file, SamConfig& c) {
  constexpr std::int64_t kMlpRatio = 4;
  c.width = read_size(file, "width", c.width);
  c.heads = read_size(file, "heads", c.heads);
  c.layers = read_size(file, "layers", c.layers, kMaxDepth);
  c.mlp_width = kMlpRatio * c.width;
  if (const auto list = file.find("global_attn_indexes")) {
    c.global_attn_indexes = read_block_indexes(*list, c.layers);
  }
  if (const auto list = file.find("downsample_channels")) {
    const std::vector<JsonView> channels = elements_of(*list, 2);
    for (std::size_t i = 0; i < 2; ++i) c.downsample_channels[i] = as_size(channels[i]);
  }
  check_heads(file, c.width, c.heads);
}

Sam load_sam(WeightLoader& loader, const SamConfig& c, std::span<const SquareView> views,
             const media::NormalizeTable& normalize) {
  Sam w;
  w.patch_embed = {
      .normalize = loader.constant(normalize),
      .proj = loader.linear("sam_model.patch_embed.proj", c.width, {3, c.patch, c.patch})};
  for (const SquareView& view : views) {
    const std::int64_t grid = view.grid();
    w.pos_embed.push_back(
        loader.f32_from("sam_model.pos_embed", {1, c.grid, c.grid, c.width}, {grid * grid, c.width},
                        [&](std::span<const float> table) {
                          return resize_position_table(table, c.grid, grid, c.width);
                        }));
  }
  for (std::int64_t layer = 0; layer < c.layers; ++layer) {
    const auto block = loader.block({.index = layer, .count = c.layers});
    w.blocks.push_back(load_sam_block(loader, c, layer, views));
  }
  load_neck(loader, c, w);
  return w;
}

void set_sam_chunks(ViewLayout& layout) {
  constexpr std::int64_t kChunkPatches = 16384;  // enough to fill any device
  const std::int64_t patches = layout.view.patches();
  layout.views_per_chunk = std::max<std::int64_t>(1, kChunkPatches / patches);
  layout.chunk_stages = {patches / 4, patches / 16};
}

void sam(ExecContext& ctx, const SamConfig& config, const Sam& weights, std::size_t view,
         const ViewInputs& in, TensorView features) {
  const std::int64_t tokens = in.all.view.tokens();
  for (const ViewBatch& chunk : in.chunks) {
    run_chunk(ctx, {config, weights, view}, chunk,
              row_range(features, chunk.first * tokens, chunk.count * tokens));
  }
}

}  // namespace fovea::common
