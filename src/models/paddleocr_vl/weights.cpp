// The tensors of the tower.
#include <string>

#include "models/common/views/siglip.h"
#include "models/paddleocr_vl/model.h"

namespace fovea::paddleocr_vl {

namespace {

constexpr float kProjectorEpsilon = 1e-5f;  // fixed in the reference, not in config.json

/// The blocks and the norm behind them are those of SigLIP.
common::SiglipConfig siglip_of(const Config& c) {
  return {.hidden_size = c.hidden_size,
          .num_hidden_layers = c.num_hidden_layers,
          .num_attention_heads = c.num_attention_heads,
          .intermediate_size = c.intermediate_size,
          .layer_norm_eps = c.layer_norm_eps,
          .hidden_act = c.hidden_act};
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
  w.blocks = common::load_siglip_blocks(loader, tower, siglip_of(c));
  w.post_layernorm = common::load_siglip_norm(loader, tower, siglip_of(c));
  w.pre_norm = loader.layer_norm("mlp_AR.pre_norm", width, kProjectorEpsilon);
  w.projector = {.fc1 = loader.linear("mlp_AR.linear_1", joined, {joined}),
                 .fc2 = loader.linear("mlp_AR.linear_2", c.text_hidden_size, {joined}),
                 .activation = ops::Activation::kGeluErf};
  return w;
}

}  // namespace fovea::paddleocr_vl
