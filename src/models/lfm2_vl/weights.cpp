// The tensors of the tower.
#include <string>
#include <utility>
#include <vector>

#include "models/common/views/siglip.h"
#include "models/lfm2_vl/model.h"

namespace fovea::lfm2_vl {

namespace {

using Bias = common::WeightLoader::Bias;

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
  const std::string tower = "vision_tower.vision_model.";
  const std::string projector = "multi_modal_projector.";
  const std::int64_t joined = c.joined_width();
  const Bias bias = c.projector_bias ? Bias::kYes : Bias::kNo;
  Weights w;
  w.patch_embedding = {
      .normalize = loader.constant(normalize),
      .proj = loader.channels_last(tower + "embeddings.patch_embedding", c.hidden_size,
                                   c.grid.patch_dim() / 3, Bias::kYes)};
  w.position_embedding =
      loader.f32(tower + "embeddings.position_embedding.weight", {c.num_patches, c.hidden_size});
  w.blocks = common::load_siglip_blocks(loader, tower, siglip_of(c));
  w.post_layernorm = common::load_siglip_norm(loader, tower, siglip_of(c));
  if (c.projector_use_layernorm) {
    w.layer_norm = loader.layer_norm(projector + "layer_norm", joined, kProjectorEpsilon);
  }
  const std::int64_t wide = c.projector_hidden_size;
  w.projector = {.fc1 = loader.linear(projector + "linear_1", wide, {joined}, bias),
                 .fc2 = loader.linear(projector + "linear_2", c.text_hidden_size, {wide}, bias),
                 .activation = c.projector_hidden_act};
  return w;
}

}  // namespace fovea::lfm2_vl
