// The tensors of the tower.
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "models/hunyuan_vl/model.h"

namespace fovea::hunyuan_vl {

namespace {

using Bias = common::WeightLoader::Bias;

common::Block load_block(common::WeightLoader& loader, const Config& c, const std::string& name) {
  const std::int64_t width = c.hidden_size;
  const auto epsilon = static_cast<float>(c.rms_norm_eps);
  const std::string attn = name + ".self_attn.";
  return {.norm1 = loader.layer_norm(name + ".input_layernorm", width, epsilon),
          .norm2 = loader.layer_norm(name + ".post_attention_layernorm", width, epsilon),
          .attn = {.qkv = loader.fused({attn + "q_proj", attn + "k_proj", attn + "v_proj"}, width,
                                       {width}, Bias::kYes),
                   .proj = loader.linear(attn + "o_proj", width, {width}),
                   .num_heads = c.num_attention_heads},
          .mlp = {.fc1 = loader.linear(name + ".mlp.dense_h_to_4h", c.intermediate_size, {width}),
                  .fc2 = loader.linear(name + ".mlp.dense_4h_to_h", width, {c.intermediate_size}),
                  .activation = c.hidden_act}};
}

common::BlockSequence load_blocks(common::WeightLoader& loader, const Config& c) {
  std::vector<common::Block> blocks;
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const auto block = loader.block(i);
    blocks.push_back(load_block(loader, c, cat("vit.layers.", i)));
  }
  return loader.block_sequence(std::move(blocks));
}

/// The table without its first row, which is that of a class token.
Tensor load_positions(common::WeightLoader& loader, const Config& c) {
  const std::int64_t places = c.position_side() * c.position_side();
  return loader.f32_from("vit.embeddings.position_embedding.weight", {1 + places, c.hidden_size},
                         {places, c.hidden_size}, [&c](std::span<const float> table) {
                           const auto grid = table.subspan(static_cast<std::size_t>(c.hidden_size));
                           return std::vector<float>(grid.begin(), grid.end());
                         });
}

Projector load_projector(common::WeightLoader& loader, const Config& c) {
  const std::string name = "vit.perceive.";
  const auto epsilon = static_cast<float>(c.rms_norm_eps);
  const std::int64_t text = c.text_hidden_size;
  const std::int64_t merge = c.grid.spatial_merge_size;
  Projector w;
  w.before_rms = loader.rms_norm(name + "before_rms", c.hidden_size, epsilon);
  w.conv = {.fc1 = loader.conv(name + "proj.0", c.conv_width(), c.hidden_size, merge, Bias::kYes),
            .fc2 = loader.linear(name + "proj.2", c.wide(), {c.conv_width(), 1, 1}),
            .activation = c.hidden_act};
  w.image_newline = loader.row(name + "image_newline", c.wide());
  w.mlp = loader.linear(name + "mlp", text, {c.wide()});
  w.image_begin = loader.row(name + "image_begin", text);
  w.image_end = loader.row(name + "image_end", text);
  w.after_rms = loader.rms_norm(name + "after_rms", text, epsilon);
  return w;
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& c,
                     const media::NormalizeTable& normalize) {
  const std::int64_t patch = c.grid.patch_size;
  Weights w;
  w.patch_embedding = {
      .normalize = loader.constant(normalize),
      .proj = loader.linear("vit.embeddings.patch_embedding", c.hidden_size, {3, patch, patch})};
  w.position_embedding = load_positions(loader, c);
  w.blocks = load_blocks(loader, c);
  w.perceive = load_projector(loader, c);
  return w;
}

}  // namespace fovea::hunyuan_vl
