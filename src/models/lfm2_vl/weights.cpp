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

/// Values of a patch come channel by channel here, pixel by pixel in the reference.
ops::PackedLinear load_patches(common::WeightLoader& loader, const Config& c,
                               const std::string& name) {
  const std::int64_t features = c.grid.patch_dim();
  const auto channels_first = [&](std::vector<float>& weight, std::vector<float>&) {
    const std::vector<float> stored = weight;
    const auto pixels = static_cast<std::size_t>(features / 3);
    for (std::size_t i = 0; i < stored.size(); ++i) {
      const std::size_t column = i % (3 * pixels);
      weight[i - column + column % 3 * pixels + column / 3] = stored[i];
    }
  };
  return loader.linear_from(name, {c.hidden_size, features}, features, channels_first);
}

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
  w.patch_embedding = {.normalize = loader.constant(normalize),
                       .proj = load_patches(loader, c, tower + "embeddings.patch_embedding")};
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
