// The tensors of both towers. Position tables are resized once, for the two sizes of views.
#include "models/deepseek_ocr/model.h"

#include "core/check.h"
#include "models/common/position_table.h"

namespace fovea::deepseek_ocr {

namespace {

constexpr float kClipEpsilon = 1e-5f;  // fixed in the vendor's code

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
    const auto block = loader.block({.index = i, .count = c.clip_layers});
    w.layers.push_back(load_clip_layer(loader, c, cat("vision_model.transformer.layers.", i)));
  }
  return w;
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& c, const Views& views,
                     const media::NormalizeTable& normalize) {
  return {.sam = common::load_sam(loader, c.sam, views, normalize),
          .clip = load_clip(loader, c, views),
          .projector = loader.linear("projector.layers", c.n_embed, {c.projector_input_dim}),
          .image_newline = loader.row("image_newline", c.n_embed),
          .view_seperator = loader.row("view_seperator", c.n_embed)};
}

}  // namespace fovea::deepseek_ocr
