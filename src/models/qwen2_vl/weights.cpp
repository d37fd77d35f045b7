// The tensors of the tower.
#include "models/qwen2_vl/model.h"

#include "core/check.h"

namespace fovea::qwen2_vl {

namespace {

constexpr float kNormEpsilon = 1e-6f;  // fixed in the reference, not in config.json

common::Block load_block(common::WeightLoader& loader, const Config& c, const std::string& name) {
  const std::int64_t width = c.embed_dim;
  return {.norm1 = loader.layer_norm(name + ".norm1", width, kNormEpsilon),
          .norm2 = loader.layer_norm(name + ".norm2", width, kNormEpsilon),
          .attn = {.qkv = loader.qkv(name + ".attn", width),
                   .proj = loader.linear(name + ".attn.proj", width, {width}),
                   .num_heads = c.num_heads},
          .mlp = {.fc1 = loader.linear(name + ".mlp.fc1", c.mlp_width(), {width}),
                  .fc2 = loader.linear(name + ".mlp.fc2", width, {c.mlp_width()}),
                  .activation = c.hidden_act}};
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& c,
                     const media::NormalizeTable& normalize) {
  const common::GridGeometry& g = c.grid;
  const std::int64_t joined = c.joined_width();
  Weights w;
  w.inv_freq = common::inverse_frequencies(loader, c.head_dim(), c.rope_theta);
  w.patch_embed = {.normalize = loader.constant(normalize),
                   .proj = loader.linear("patch_embed.proj", c.embed_dim,
                                         {3, g.temporal_patch_size, g.patch_size, g.patch_size},
                                         common::WeightLoader::Bias::kNo)};
  for (std::int64_t i = 0; i < c.depth; ++i) {
    const auto block = loader.block({.index = i, .count = c.depth});
    w.blocks.push_back(load_block(loader, c, cat("blocks.", i)));
  }
  w.ln_q = loader.layer_norm("merger.ln_q", c.embed_dim, kNormEpsilon);
  w.merger = {.fc1 = loader.linear("merger.mlp.0", joined, {joined}),
              .fc2 = loader.linear("merger.mlp.2", c.hidden_size, {joined}),
              .activation = ops::Activation::kGeluErf};
  return w;
}

}  // namespace fovea::qwen2_vl
