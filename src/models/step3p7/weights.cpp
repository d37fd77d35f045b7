// The tensors of the tower.
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "models/common/rope.h"
#include "models/step3p7/model.h"

namespace fovea::step3p7 {

namespace {

using Bias = common::WeightLoader::Bias;

/// The first half of the pairs of a head turns with the column, the second with the row. Angles of
/// rows come first here (ops/projected_attention.h).
common::RowOrder row_order(std::int64_t head_dim) {
  const std::int64_t quarter = head_dim / 4;
  std::vector<std::int64_t> pairs;
  for (std::int64_t i = 0; i < quarter; ++i) pairs.push_back(quarter + i);
  for (std::int64_t i = 0; i < quarter; ++i) pairs.push_back(i);
  return common::halves_order(pairs);
}

/// The last layer of a branch, with its layer scale if there is one.
ops::PackedLinear load_last(common::WeightLoader& loader, const Config& c, const std::string& name,
                            const std::string& scale, std::int64_t in_features) {
  return c.has_layer_scales ? loader.scaled_linear(name, scale + ".gamma", c.width, in_features)
                            : loader.linear(name, c.width, {in_features});
}

common::Block load_block(common::WeightLoader& loader, const Config& c, const std::string& name) {
  const auto epsilon = static_cast<float>(c.layer_norm_eps);
  const std::int64_t wide = c.mlp_width();
  return {.norm1 = loader.layer_norm(name + ".ln_1", c.width, epsilon),
          .norm2 = loader.layer_norm(name + ".ln_2", c.width, epsilon),
          .attn = {.qkv = loader.in_proj(name + ".attn", c.width, row_order(c.head_dim())),
                   .proj = load_last(loader, c, name + ".attn.out_proj", name + ".ls_1", c.width),
                   .num_heads = c.heads},
          .mlp = {.fc1 = loader.linear(name + ".mlp.c_fc", wide, {c.width}),
                  .fc2 = load_last(loader, c, name + ".mlp.c_proj", name + ".ls_2", wide),
                  .activation = c.hidden_act}};
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& c,
                     const media::NormalizeTable& normalize) {
  const std::string tower = "vision_model.";
  const std::int64_t patch = c.view.patch_px;
  Weights w;
  w.inv_freq = common::inverse_frequencies(loader, c.head_dim(), c.rope_theta);
  w.patch_embed = {.normalize = loader.constant(normalize),
                   .proj = loader.linear(tower + "conv1", c.width, {3, patch, patch}, Bias::kNo)};
  w.positions = loader.f32(tower + "positional_embedding", {c.view.patches(), c.width});
  w.ln_pre = loader.layer_norm(tower + "ln_pre", c.width, static_cast<float>(c.layer_norm_eps));
  std::vector<common::Block> blocks;
  for (std::int64_t i = 0; i < c.layers; ++i) {
    const auto block = loader.block({.index = i, .count = c.layers});
    blocks.push_back(load_block(loader, c, cat(tower, "transformer.resblocks.", i)));
  }
  w.blocks = loader.block_sequence(std::move(blocks));
  w.vit_downsampler1 =
      loader.conv3x3(tower + "vit_downsampler1", 2 * c.width, c.width, 2, Bias::kYes);
  w.vit_downsampler2 =
      loader.conv3x3(tower + "vit_downsampler2", 4 * c.width, 2 * c.width, 2, Bias::kYes);
  w.vit_large_projector = loader.linear("vit_large_projector", c.text_hidden_size, {4 * c.width},
                                        c.projector_bias ? Bias::kYes : Bias::kNo);
  return w;
}

}  // namespace fovea::step3p7
