// The tensors of the tower.
#include "models/qwen2_5_vl/model.h"

#include "core/check.h"

namespace fovea::qwen2_5_vl {

namespace {

using Bias = common::WeightLoader::Bias;

constexpr float kNormEpsilon = 1e-6f;  // fixed in the reference, not in config.json

ops::PackedLinear load_qkv(common::WeightLoader& loader, const Config& c, const std::string& name) {
  if (c.num_key_value_heads == c.num_heads) return loader.qkv(name, c.hidden_size);
  return loader.grouped_qkv(name, c.hidden_size, c.num_heads, c.num_key_value_heads);
}

common::GatedBlock load_block(common::WeightLoader& loader, const Config& c,
                              const std::string& name) {
  const std::int64_t width = c.hidden_size;
  return {.norm1 = loader.rms_norm(name + ".norm1", width, kNormEpsilon),
          .norm2 = loader.rms_norm(name + ".norm2", width, kNormEpsilon),
          .attn = {.qkv = load_qkv(loader, c, name + ".attn"),
                   .proj = loader.linear(name + ".attn.proj", width, {width}),
                   .num_heads = c.num_heads},
          .mlp = loader.gated(name + ".mlp", width, c.intermediate_size, c.hidden_act, Bias::kYes)};
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& c,
                     const media::NormalizeTable& normalize) {
  const common::GridGeometry& g = c.grid;
  const std::int64_t joined = c.joined_width();
  Weights w;
  w.inv_freq = common::inverse_frequencies(loader, c.head_dim(), c.rope_theta);
  w.patch_embed = {
      .normalize = loader.constant(normalize),
      .proj = loader.linear("patch_embed.proj", c.hidden_size,
                            {3, g.temporal_patch_size, g.patch_size, g.patch_size}, Bias::kNo)};
  for (std::int64_t i = 0; i < c.depth; ++i) {
    const auto block =
        loader.block({.index = i, .count = c.depth, .native_of_nine = kGatedNativeOfNine});
    w.blocks.push_back(load_block(loader, c, cat("blocks.", i)));
  }
  w.ln_q = loader.rms_norm("merger.ln_q", c.hidden_size, kNormEpsilon);
  w.merger = {.fc1 = loader.linear("merger.mlp.0", joined, {joined}),
              .fc2 = loader.linear("merger.mlp.2", c.out_hidden_size, {joined}),
              .activation = ops::Activation::kGeluErf};
  return w;
}

}  // namespace fovea::qwen2_5_vl
