// The tensors of the tower.
#include "models/llama4/model.h"

#include "core/check.h"
#include "models/common/rope.h"
#include "models/common/views/layers.h"

namespace fovea::llama4 {

namespace {

using Bias = common::WeightLoader::Bias;

constexpr float kNormEpsilon = 1e-5f;  // the reference does not read norm_eps

/// The first half of the pairs of a head turns with the column, the second with the row. Angles of
/// rows come first here (ops/projected_attention.h).
common::RowOrder row_order(std::int64_t head_dim) {
  const std::int64_t pairs_of_axis = head_dim / 4;
  std::vector<std::int64_t> pairs;
  for (std::int64_t i = 0; i < pairs_of_axis; ++i) pairs.push_back(pairs_of_axis + i);
  for (std::int64_t i = 0; i < pairs_of_axis; ++i) pairs.push_back(i);
  return common::halves_order(pairs);
}

common::Block load_layer(common::WeightLoader& loader, const Config& c, const std::string& name) {
  const std::int64_t width = c.hidden_size;
  const std::string attn = name + ".self_attn";
  return {.norm1 = loader.layer_norm(name + ".input_layernorm", width, kNormEpsilon),
          .norm2 = loader.layer_norm(name + ".post_attention_layernorm", width, kNormEpsilon),
          .attn = {.qkv = loader.qkv({attn + ".q_proj", attn + ".k_proj", attn + ".v_proj"}, width,
                                     row_order(c.head_dim())),
                   .proj = loader.linear(attn + ".o_proj", width, {width}),
                   .num_heads = c.num_attention_heads},
          .mlp = {.fc1 = loader.linear(name + ".mlp.fc1", c.intermediate_size, {width}),
                  .fc2 = loader.linear(name + ".mlp.fc2", width, {c.intermediate_size}),
                  .activation = ops::Activation::kGeluErf}};
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& c,
                     const media::NormalizeTable& normalize) {
  const std::int64_t width = c.hidden_size;
  const std::int64_t patch = c.view.patch_px;
  const std::int64_t wide = c.vision_output_dim;
  Weights w;
  w.inv_freq = common::inverse_frequencies(loader, c.head_dim(), c.rope_theta);
  w.patch_embedding = {.normalize = loader.constant(normalize),
                       .proj = loader.linear("vision_model.patch_embedding.linear", width,
                                             {3 * patch * patch}, Bias::kNo)};
  w.class_embedding = loader.row("vision_model.class_embedding", width);
  const Shape positions{c.view.patches() + 1, width};
  w.positional_embedding = loader.f32_from("vision_model.positional_embedding_vlm", positions,
                                           positions, [&](std::span<const float> table) {
                                             return common::in_patch_order(c.view, 0, width, table);
                                           });
  w.layernorm_pre = loader.layer_norm("vision_model.layernorm_pre", width, kNormEpsilon);
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const auto block = loader.block({.index = i, .count = c.num_hidden_layers});
    w.layers.push_back(load_layer(loader, c, cat("vision_model.model.layers.", i)));
  }
  w.layernorm_post = loader.layer_norm("vision_model.layernorm_post", width, kNormEpsilon);
  w.adapter_fc1 =
      loader.linear("vision_model.vision_adapter.mlp.fc1", wide, {c.joined_width()}, Bias::kNo);
  w.adapter_fc2 = loader.linear("vision_model.vision_adapter.mlp.fc2", wide, {wide}, Bias::kNo);
  w.projector =
      loader.linear("multi_modal_projector.linear_1", c.text_hidden_size, {wide}, Bias::kNo);
  return w;
}

}  // namespace fovea::llama4
