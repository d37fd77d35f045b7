// The tensors of both towers. Position tables are resized once, for the two sizes of views.
#include "models/deepseek_ocr/weights.h"

#include "core/check.h"
#include "models/deepseek_ocr/tables.h"

namespace fovea::deepseek_ocr {

namespace {

using Bias = blocks::WeightLoader::Bias;

SamBlockWeights load_block(blocks::WeightLoader& loader, const Config& c, std::int64_t layer,
                           const std::array<ViewGeometry, 2>& views) {
  const std::string name = cat("sam_model.blocks.", layer);
  const std::int64_t width = c.sam_width;
  const std::int64_t side = c.is_global_block(layer) ? Config::kSamGrid : Config::kWindow;
  const auto relative = [&](const std::string& axis) {
    std::array<Tensor, 2> tables;
    for (std::size_t path = 0; path < 2; ++path) {
      const std::int64_t grid = c.is_global_block(layer) ? views[path].grid() : side;
      const std::int64_t rows = 2 * grid - 1;
      tables[path] = loader.f32_from(name + ".attn." + axis, {2 * side - 1, c.sam_head_dim()},
                                     {rows, c.sam_head_dim()}, [&](std::span<const float> table) {
                                       return resize_relative_table(table, 2 * side - 1, rows,
                                                                    c.sam_head_dim());
                                     });
    }
    return tables;
  };
  return {.norm1 = loader.layer_norm(name + ".norm1", width),
          .norm2 = loader.layer_norm(name + ".norm2", width),
          .qkv = loader.linear(name + ".attn.qkv", 3 * width, {width}),
          .proj = loader.linear(name + ".attn.proj", width, {width}),
          .lin1 = loader.linear(name + ".mlp.lin1", Config::kMlpRatio * width, {width}),
          .lin2 = loader.linear(name + ".mlp.lin2", width, {Config::kMlpRatio * width}),
          .qkv_bias = loader.f32(name + ".attn.qkv.bias", {3 * width}),
          .rel_pos_h = relative("rel_pos_h"),
          .rel_pos_w = relative("rel_pos_w")};
}

SamWeights load_sam(blocks::WeightLoader& loader, const Config& c,
                    const std::array<ViewGeometry, 2>& views) {
  SamWeights w;
  w.patch_embed =
      loader.linear("sam_model.patch_embed.proj", c.sam_width, {3, Config::kPatch, Config::kPatch});
  for (std::size_t path = 0; path < 2; ++path) {
    const std::int64_t grid = views[path].grid();
    w.pos_embed[path] =
        loader.f32_from("sam_model.pos_embed", {1, Config::kSamGrid, Config::kSamGrid, c.sam_width},
                        {grid * grid, c.sam_width}, [&](std::span<const float> table) {
                          return resize_position_table(table, Config::kSamGrid, grid, c.sam_width);
                        });
  }
  for (std::int64_t layer = 0; layer < c.sam_layers; ++layer) {
    w.blocks.push_back(load_block(loader, c, layer, views));
  }
  constexpr std::int64_t kNeck = Config::kNeckChannels;
  w.neck_0 = loader.linear("sam_model.neck.0", kNeck, {c.sam_width, 1, 1}, Bias::kNo);
  w.neck_1 = loader.layer_norm("sam_model.neck.1", kNeck);
  w.neck_2 = loader.conv3x3("sam_model.neck.2", kNeck, kNeck);
  w.neck_3 = loader.layer_norm("sam_model.neck.3", kNeck);
  w.net_2 = loader.conv3x3("sam_model.net_2", c.downsample_channels[0], kNeck);
  w.net_3 = loader.conv3x3("sam_model.net_3", c.downsample_channels[1], c.downsample_channels[0]);
  return w;
}

ClipLayerWeights load_layer(blocks::WeightLoader& loader, const Config& c,
                            const std::string& name) {
  const std::int64_t width = c.clip_width;
  return {.layer_norm1 = loader.layer_norm(name + ".layer_norm1", width),
          .layer_norm2 = loader.layer_norm(name + ".layer_norm2", width),
          .qkv_proj = loader.linear(name + ".self_attn.qkv_proj", 3 * width, {width}),
          .out_proj = loader.linear(name + ".self_attn.out_proj", width, {width}),
          .fc1 = loader.linear(name + ".mlp.fc1", Config::kMlpRatio * width, {width}),
          .fc2 = loader.linear(name + ".mlp.fc2", width, {Config::kMlpRatio * width})};
}

/// Position table of CLIP at the size of a view: the row of the class token stays, the grid is
/// resized.
std::vector<float> resize_clip_table(std::span<const float> table, const ViewGeometry& view,
                                     std::int64_t width) {
  const auto row = static_cast<std::size_t>(width);
  std::vector<float> result(table.begin(), table.begin() + width);
  const std::vector<float> grid =
      resize_position_table(table.subspan(row), Config::kClipGrid, view.tokens_side(), width);
  result.insert(result.end(), grid.begin(), grid.end());
  return result;
}

ClipWeights load_clip(blocks::WeightLoader& loader, const Config& c,
                      const std::array<ViewGeometry, 2>& views) {
  ClipWeights w;
  const auto as_row = [](std::span<const float> values) {
    return std::vector<float>(values.begin(), values.end());
  };
  w.class_embedding = loader.f32_from("vision_model.embeddings.class_embedding", {c.clip_width},
                                      {1, c.clip_width}, as_row);
  for (std::size_t path = 0; path < 2; ++path) {
    w.position_embedding[path] = loader.f32_from(
        "vision_model.embeddings.position_embedding.weight",
        {Config::kClipGrid * Config::kClipGrid + 1, c.clip_width},
        {views[path].tokens() + 1, c.clip_width}, [&](std::span<const float> table) {
          return resize_clip_table(table, views[path], c.clip_width);
        });
  }
  w.pre_layrnorm = loader.layer_norm("vision_model.pre_layrnorm", c.clip_width);
  for (std::int64_t i = 0; i < c.clip_layers; ++i) {
    w.layers.push_back(load_layer(loader, c, cat("vision_model.transformer.layers.", i)));
  }
  return w;
}

}  // namespace

Weights load_weights(blocks::WeightLoader& loader, const Config& c,
                     const std::array<ViewGeometry, 2>& views) {
  const auto as_row = [](std::span<const float> values) {
    return std::vector<float>(values.begin(), values.end());
  };
  return {.sam = load_sam(loader, c, views),
          .clip = load_clip(loader, c, views),
          .projector = loader.linear("projector.layers", c.n_embed, {c.projector_input_dim}),
          .image_newline = loader.f32_from("image_newline", {c.n_embed}, {1, c.n_embed}, as_row),
          .view_seperator = loader.f32_from("view_seperator", {c.n_embed}, {1, c.n_embed}, as_row)};
}

}  // namespace fovea::deepseek_ocr
