// The tensors of the tower and its adapter.
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "models/molmo2/model.h"

namespace fovea::molmo2 {

namespace {

using Bias = common::WeightLoader::Bias;

Bias bias_of(bool has_bias) { return has_bias ? Bias::kYes : Bias::kNo; }

common::Block load_block(common::WeightLoader& loader, const Config& c, const std::string& name) {
  const std::int64_t width = c.hidden_size;
  const auto epsilon = static_cast<float>(c.layer_norm_eps);
  const std::string attn = name + ".attention";
  const Bias bias = bias_of(c.attention_bias);
  return {.norm1 = loader.layer_norm(name + ".attention_norm", width, epsilon),
          .norm2 = loader.layer_norm(name + ".ffn_norm", width, epsilon),
          .attn = {.qkv = loader.fused({attn + ".wq", attn + ".wk", attn + ".wv"}, width, {width},
                                       bias),
                   .proj = loader.linear(attn + ".wo", width, {width}, bias),
                   .num_heads = c.num_attention_heads},
          .mlp = {.fc1 = loader.linear(name + ".feed_forward.w1", c.intermediate_size, {width}),
                  .fc2 = loader.linear(name + ".feed_forward.w2", width, {c.intermediate_size}),
                  .activation = c.hidden_act}};
}

common::SiglipTower load_tower(common::WeightLoader& loader, const Config& c,
                               const media::NormalizeTable& normalize) {
  const std::string vit = "vision_backbone.image_vit.";
  common::SiglipTower tower{
      .patch_embedding = {.normalize = loader.constant(normalize),
                          .proj = loader.channels_last(vit + "patch_embedding", c.hidden_size,
                                                       c.view.patch_px * c.view.patch_px,
                                                       common::WeightLoader::Bias::kYes)},
      .position_embedding =
          loader.f32(vit + "positional_embedding", {c.view.patches(), c.hidden_size}),
      .blocks = {}};
  std::vector<common::Block> blocks;
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const auto block = loader.block(i);
    blocks.push_back(load_block(loader, c, cat(vit, "transformer.resblocks.", i)));
  }
  tower.blocks = loader.block_sequence(std::move(blocks));
  return tower;
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& c,
                     const media::NormalizeTable& normalize) {
  const std::string pooling = "vision_backbone.image_pooling_2d.";
  const std::string projector = "vision_backbone.image_projector.";
  const std::int64_t width = c.hidden_size;
  const std::int64_t wide = c.adapter_intermediate_size;
  const std::int64_t features = c.feature_width();
  const Bias bias = bias_of(c.adapter_attention_bias);
  media::NormalizeTable raw{};
  for (auto& channel : raw) std::iota(channel.begin(), channel.end(), 0.0f);
  return {
      .tower = load_tower(loader, c, normalize),
      .raw_bytes = loader.constant(raw),
      .pooling = {.wq = loader.linear(pooling + "wq", width, {features}, bias),
                  .wkv = loader.fused({pooling + "wk", pooling + "wv"}, width, {features}, bias),
                  .wo = loader.linear(pooling + "wo", width, {width}, bias)},
      .projector = {
          .gate_up = loader.fused({projector + "w1", projector + "w3"}, wide, {width}, Bias::kNo),
          .down = loader.linear(projector + "w2", c.text_hidden_size, {wide}, Bias::kNo),
          .activation = c.adapter_hidden_act}};
}

}  // namespace fovea::molmo2
