// The tensors of the tower.
#include "models/qwen3_vl/model.h"

#include "core/check.h"

namespace fovea::qwen3_vl {

namespace {

constexpr float kNormEpsilon = 1e-6f;  // fixed in the reference, not in config.json

common::Block load_block(common::WeightLoader& loader, const Config& c, const std::string& name) {
  return {
      .norm1 = loader.layer_norm(name + ".norm1", c.hidden_size, kNormEpsilon),
      .norm2 = loader.layer_norm(name + ".norm2", c.hidden_size, kNormEpsilon),
      .attn = {.qkv = loader.qkv(name + ".attn", c.hidden_size),
               .proj = loader.linear(name + ".attn.proj", c.hidden_size, {c.hidden_size}),
               .num_heads = c.num_heads},
      .mlp = {.fc1 = loader.linear(name + ".mlp.linear_fc1", c.intermediate_size, {c.hidden_size}),
              .fc2 = loader.linear(name + ".mlp.linear_fc2", c.hidden_size, {c.intermediate_size}),
              .activation = c.hidden_act}};
}

Merger load_merger(common::WeightLoader& loader, const Config& c, const std::string& name,
                   std::int64_t norm_features) {
  const std::int64_t joined = c.joined_width();
  return {.norm = loader.layer_norm(cat(name, c.mergers.norm), norm_features, kNormEpsilon),
          .mlp = {.fc1 = loader.linear(cat(name, c.mergers.fc1), joined, {joined}),
                  .fc2 = loader.linear(cat(name, c.mergers.fc2), c.out_hidden_size, {joined}),
                  .activation = ops::Activation::kGeluErf}};
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& c,
                     const media::NormalizeTable& normalize) {
  const common::GridGeometry& g = c.grid;
  Weights w;
  w.inv_freq = common::inverse_frequencies(loader, c.head_dim(), c.rope_theta);
  w.patch_embed = {.normalize = loader.constant(normalize),
                   .proj = loader.linear("patch_embed.proj", c.hidden_size,
                                         {3, g.temporal_patch_size, g.patch_size, g.patch_size})};
  w.pos_embed = loader.f32("pos_embed.weight", {c.num_position_embeddings, c.hidden_size});
  w.pos_embed.shape = {c.position_side() * c.position_side(), c.hidden_size};
  std::vector<common::Block> blocks;
  for (std::int64_t i = 0; i < c.depth; ++i) {
    const auto block = loader.block({.index = i, .count = c.depth});
    blocks.push_back(load_block(loader, c, cat("blocks.", i)));
  }
  w.blocks = loader.block_sequence(std::move(blocks));
  w.merger = load_merger(loader, c, "merger", c.hidden_size);
  for (std::int64_t k = 0; k < c.num_deepstack(); ++k) {
    w.deepstack.push_back(load_merger(loader, c, cat(c.mergers.levels, k), c.joined_width()));
  }
  return w;
}

}  // namespace fovea::qwen3_vl
