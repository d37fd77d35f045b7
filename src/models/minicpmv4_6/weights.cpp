// The tensors of the tower.
#include <string>

#include "models/minicpmv4_6/model.h"

namespace fovea::minicpmv4_6 {

namespace {

constexpr float kMergerEpsilon = 1e-6f;  // fixed in the reference, not in config.json

WindowMerger load_window_merger(common::WeightLoader& loader, const Config& c,
                                const std::string& name) {
  const std::int64_t width = c.tower.hidden_size;
  const std::int64_t joined = Config::kArea * width;
  const std::int64_t wide = Config::kArea * c.tower.intermediate_size;
  const auto epsilon = static_cast<float>(c.tower.layer_norm_eps);
  return {.layer_norm1 = loader.layer_norm(name + "layer_norm1", width, epsilon),
          .self_attn = common::load_siglip_attention(loader, name, c.tower),
          .pre_norm = loader.layer_norm(name + "pre_norm", joined, epsilon),
          .mlp = {.fc1 = loader.linear(name + "linear_1", wide, {joined}),
                  .fc2 = loader.linear(name + "linear_2", width, {wide}),
                  .activation = ops::Activation::kGeluTanh}};
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& c,
                     const media::NormalizeTable& normalize) {
  const std::string tower = "vision_tower.";
  const std::string merger = "merger.mlp.0.";
  const std::int64_t width = c.tower.hidden_size;
  const std::int64_t patch = c.grid.patch_size;
  const std::int64_t joined = Config::kArea * width;
  const std::int64_t first = c.insert_layer_id + 1;
  Weights w;
  w.patch_embedding = {
      .normalize = loader.constant(normalize),
      .proj = loader.linear(tower + "embeddings.patch_embedding", width, {3, patch, patch})};
  w.position_embedding =
      loader.f32(tower + "embeddings.position_embedding.weight", {c.tower.view.patches(), width});
  w.blocks = common::load_siglip_blocks(loader, tower, c.tower, 0, first);
  w.vit_merger = load_window_merger(loader, c, tower + "vit_merger.");
  w.later_blocks =
      common::load_siglip_blocks(loader, tower, c.tower, first, c.tower.num_hidden_layers - first);
  w.post_layernorm = common::load_siglip_norm(loader, tower, c.tower);
  w.pre_norm = loader.layer_norm(merger + "pre_norm", joined, kMergerEpsilon);
  w.merger = {.fc1 = loader.linear(merger + "linear_1", joined, {joined}),
              .fc2 = loader.linear(merger + "linear_2", c.text_hidden_size, {joined}),
              .activation = ops::Activation::kGeluErf};
  return w;
}

}  // namespace fovea::minicpmv4_6
