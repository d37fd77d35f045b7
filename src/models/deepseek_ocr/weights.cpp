// The tensors of both towers. Position tables are resized once, for the two sizes of views.
#include "models/deepseek_ocr/model.h"

#include "core/check.h"
#include "models/common/position_table.h"

namespace fovea::deepseek_ocr {

namespace {

using Bias = common::WeightLoader::Bias;

constexpr float kSamEpsilon = 1e-6f;   // fixed in the vendor's code
constexpr float kClipEpsilon = 1e-5f;  // fixed in the vendor's code

SamBlock load_sam_block(common::WeightLoader& loader, const Config& c, std::int64_t layer,
                        const Views& views) {
  const std::string name = cat("sam_model.blocks.", layer);
  const std::int64_t width = c.sam_width;
  const std::int64_t wide = Config::kMlpRatio * width;
  const std::int64_t side = c.is_global_block(layer) ? Config::kSamGrid : Config::kWindow;
  const auto relative = [&](const std::string& axis) {
    std::array<Tensor, kNumPaths> tables;
    for (std::size_t path = 0; path < kNumPaths; ++path) {
      const std::int64_t grid = c.is_global_block(layer) ? views[path].grid() : side;
      const std::int64_t rows = 2 * grid - 1;
      tables[path] = loader.f32_from(cat(name, ".attn.", axis), {2 * side - 1, c.sam_head_dim()},
                                     {rows, c.sam_head_dim()}, [&](std::span<const float> table) {
                                       return common::resize_relative_table(table, 2 * side - 1,
                                                                            rows, c.sam_head_dim());
                                     });
    }
    return tables;
  };
  return {.norm1 = loader.layer_norm(name + ".norm1", width, kSamEpsilon),
          .norm2 = loader.layer_norm(name + ".norm2", width, kSamEpsilon),
          .attn = {.qkv = loader.linear(name + ".attn.qkv", 3 * width, {width}),
                   .proj = loader.linear(name + ".attn.proj", width, {width}),
                   .num_heads = c.sam_heads},
          .mlp = {.fc1 = loader.linear(name + ".mlp.lin1", wide, {width}),
                  .fc2 = loader.linear(name + ".mlp.lin2", width, {wide}),
                  .activation = ops::Activation::kGeluErf},
          .qkv_bias = loader.f32(name + ".attn.qkv.bias", {3 * width}),
          .rel_pos_h = relative("rel_pos_h"),
          .rel_pos_w = relative("rel_pos_w")};
}

Sam load_sam(common::WeightLoader& loader, const Config& c, const Views& views,
             const media::NormalizeTable& normalize) {
  constexpr std::int64_t kGrid = Config::kSamGrid;
  Sam w;
  w.patch_embed = {.normalize = loader.constant(normalize),
                   .proj = loader.linear("sam_model.patch_embed.proj", c.sam_width,
                                         {3, Config::kPatch, Config::kPatch})};
  for (std::size_t path = 0; path < kNumPaths; ++path) {
    const std::int64_t grid = views[path].grid();
    w.pos_embed[path] =
        loader.f32_from("sam_model.pos_embed", {1, kGrid, kGrid, c.sam_width},
                        {grid * grid, c.sam_width}, [&](std::span<const float> table) {
                          return common::resize_position_table(table, kGrid, grid, c.sam_width);
                        });
  }
  for (std::int64_t layer = 0; layer < c.sam_layers; ++layer) {
    const auto block = loader.block(layer);
    w.blocks.push_back(load_sam_block(loader, c, layer, views));
  }
  constexpr std::int64_t kNeck = Config::kNeckChannels;
  w.neck_0 = loader.linear("sam_model.neck.0", kNeck, {c.sam_width, 1, 1}, Bias::kNo);
  w.neck_1 = loader.layer_norm("sam_model.neck.1", kNeck, kSamEpsilon);
  w.neck_2 = loader.conv3x3("sam_model.neck.2", kNeck, kNeck, 1, Bias::kNo);
  w.neck_3 = loader.layer_norm("sam_model.neck.3", kNeck, kSamEpsilon);
  w.net_2 = loader.conv3x3("sam_model.net_2", c.downsample_channels[0], kNeck, 2, Bias::kNo);
  w.net_3 = loader.conv3x3("sam_model.net_3", c.downsample_channels[1], c.downsample_channels[0], 2,
                           Bias::kNo);
  return w;
}

common::Block load_clip_layer(common::WeightLoader& loader, const Config& c,
                              const std::string& name) {
  const std::int64_t width = c.clip_width;
  const std::int64_t wide = Config::kMlpRatio * width;
  return {.norm1 = loader.layer_norm(name + ".layer_norm1", width, kClipEpsilon),
          .norm2 = loader.layer_norm(name + ".layer_norm2", width, kClipEpsilon),
          .attn = {.qkv = loader.linear(name + ".self_attn.qkv_proj", 3 * width, {width}),
                   .proj = loader.linear(name + ".self_attn.out_proj", width, {width}),
                   .num_heads = c.clip_heads},
          .mlp = {.fc1 = loader.linear(name + ".mlp.fc1", wide, {width}),
                  .fc2 = loader.linear(name + ".mlp.fc2", width, {wide}),
                  .activation = ops::Activation::kQuickGelu}};
}

Clip load_clip(common::WeightLoader& loader, const Config& c, const Views& views) {
  Clip w;
  w.class_embedding = loader.row("vision_model.embeddings.class_embedding", c.clip_width);
  for (std::size_t path = 0; path < kNumPaths; ++path) {
    w.position_embedding[path] = loader.f32_from(
        "vision_model.embeddings.position_embedding.weight",
        {Config::kClipGrid * Config::kClipGrid + 1, c.clip_width},
        {views[path].tokens() + 1, c.clip_width}, [&](std::span<const float> table) {
          return common::resize_class_table(table, Config::kClipGrid, views[path].tokens_side(),
                                            c.clip_width);
        });
  }
  w.pre_layrnorm = loader.layer_norm("vision_model.pre_layrnorm", c.clip_width, kClipEpsilon);
  for (std::int64_t i = 0; i < c.clip_layers; ++i) {
    const auto block = loader.block(i);
    w.layers.push_back(load_clip_layer(loader, c, cat("vision_model.transformer.layers.", i)));
  }
  return w;
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& c, const Views& views,
                     const media::NormalizeTable& normalize) {
  return {.sam = load_sam(loader, c, views, normalize),
          .clip = load_clip(loader, c, views),
          .projector = loader.linear("projector.layers", c.n_embed, {c.projector_input_dim}),
          .image_newline = loader.row("image_newline", c.n_embed),
          .view_seperator = loader.row("view_seperator", c.n_embed)};
}

}  // namespace fovea::deepseek_ocr
