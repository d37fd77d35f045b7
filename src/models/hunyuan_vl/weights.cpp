// The tensors of the tower.
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "models/common/blocks.h"
#include "models/hunyuan_vl/model.h"

namespace fovea::hunyuan_vl {

namespace {

using Bias = common::WeightLoader::Bias;

common::BlockSequence load_blocks(common::WeightLoader& loader, const Config& c) {
  const common::BlockNames names{
      .norm1 = "input_layernorm",
      .norm2 = "post_attention_layernorm",
      .qkv = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"},
      .proj = "self_attn.o_proj",
      .fc1 = "mlp.dense_h_to_4h",
      .fc2 = "mlp.dense_4h_to_h"};
  const common::BlockShape shape{.hidden_size = c.hidden_size,
                                 .intermediate_size = c.intermediate_size,
                                 .num_attention_heads = c.num_attention_heads,
                                 .layer_norm_eps = c.rms_norm_eps,
                                 .hidden_act = c.hidden_act};
  return common::load_blocks(loader, "vit.layers.", names, shape, c.num_hidden_layers);
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
