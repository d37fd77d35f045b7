// The tensors of the tower.
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "models/paddleocr_vl/model.h"

namespace fovea::paddleocr_vl {

namespace {

using Bias = common::WeightLoader::Bias;

constexpr float kProjectorEpsilon = 1e-5f;  // fixed in the reference, not in config.json

common::Block load_block(common::WeightLoader& loader, const Config& c, const std::string& name) {
  const std::int64_t width = c.hidden_size;
  const std::int64_t wide = c.intermediate_size;
  const auto epsilon = static_cast<float>(c.layer_norm_eps);
  const std::string attn = name + ".self_attn";
  return {.norm1 = loader.layer_norm(name + ".layer_norm1", width, epsilon),
          .norm2 = loader.layer_norm(name + ".layer_norm2", width, epsilon),
          .attn = {.qkv = loader.fused({attn + ".q_proj", attn + ".k_proj", attn + ".v_proj"},
                                       width, {width}, Bias::kYes),
                   .proj = loader.linear(attn + ".out_proj", width, {width}),
                   .num_heads = c.num_attention_heads},
          .mlp = {.fc1 = loader.linear(name + ".mlp.fc1", wide, {width}),
                  .fc2 = loader.linear(name + ".mlp.fc2", width, {wide}),
                  .activation = c.hidden_act}};
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& c,
                     const media::NormalizeTable& normalize) {
  const std::string tower = "visual.vision_model.";
  const std::int64_t width = c.hidden_size;
  const std::int64_t patch = c.grid.patch_size;
  const std::int64_t joined = c.joined_width();
  Weights w;
  w.inv_freq = common::inverse_frequencies(loader, c.head_dim(), c.rope_theta);
  w.patch_embedding = {
      .normalize = loader.constant(normalize),
      .proj = loader.linear(tower + "embeddings.patch_embedding", width, {3, patch, patch})};
  w.position_embedding = loader.f32(tower + "embeddings.position_embedding.weight",
                                    {c.position_side() * c.position_side(), width});
  std::vector<common::Block> blocks;
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const auto block = loader.block(i);
    blocks.push_back(load_block(loader, c, cat(tower, "encoder.layers.", i)));
  }
  w.blocks = loader.block_sequence(std::move(blocks));
  w.post_layernorm =
      loader.layer_norm(tower + "post_layernorm", width, static_cast<float>(c.layer_norm_eps));
  w.pre_norm = loader.layer_norm("mlp_AR.pre_norm", width, kProjectorEpsilon);
  w.projector = {.fc1 = loader.linear("mlp_AR.linear_1", joined, {joined}),
                 .fc2 = loader.linear("mlp_AR.linear_2", c.text_hidden_size, {joined}),
                 .activation = ops::Activation::kGeluErf};
  return w;
}

}  // namespace fovea::paddleocr_vl
