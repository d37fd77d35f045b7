// The tensors of the tower.
#include "models/glm4v/model.h"

#include "core/check.h"

namespace fovea::glm4v {

namespace {

using Bias = common::WeightLoader::Bias;

constexpr float kMergerEpsilon = 1e-5f;  // fixed in the reference, not in config.json

common::Attention load_attention(common::WeightLoader& loader, const Config& c,
                                 const std::string& name) {
  const std::int64_t width = c.hidden_size;
  const Bias bias = c.attention_bias ? Bias::kYes : Bias::kNo;
  common::Attention attention{
      .qkv = loader.qkv(name, width, bias),
      .proj = loader.linear(name + ".proj", width, {width}, c.has_table ? Bias::kNo : bias),
      .num_heads = c.num_heads};
  if (c.has_table) return attention;
  const auto epsilon = static_cast<float>(c.rms_norm_eps);
  attention.q_norm = loader.rms_norm(name + ".q_norm", c.head_dim(), epsilon);
  attention.k_norm = loader.rms_norm(name + ".k_norm", c.head_dim(), epsilon);
  return attention;
}

/// The gated MLP of a block, or of the merger.
common::GatedMlp load_mlp(common::WeightLoader& loader, const Config& c, const std::string& name,
                          std::int64_t features, std::int64_t wide, Bias bias) {
  common::GatedMlp mlp = loader.gated(name, features, wide, c.hidden_act, bias);
  mlp.limit = static_cast<float>(c.swiglu_limit);
  return mlp;
}

common::GatedBlock load_block(common::WeightLoader& loader, const Config& c,
                              const std::string& name) {
  const std::int64_t width = c.hidden_size;
  const auto epsilon = static_cast<float>(c.rms_norm_eps);
  const Bias bias = c.attention_bias && !c.has_table ? Bias::kYes : Bias::kNo;
  return {.norm1 = loader.rms_norm(name + ".norm1", width, epsilon),
          .norm2 = loader.rms_norm(name + ".norm2", width, epsilon),
          .attn = load_attention(loader, c, name + ".attn"),
          .mlp = load_mlp(loader, c, name + ".mlp", width, c.mlp_width, bias)};
}

Merger load_merger(common::WeightLoader& loader, const Config& c) {
  const std::int64_t width = c.out_hidden_size;
  return {.proj = loader.linear("merger.proj", width, {width}, Bias::kNo),
          .norm = loader.layer_norm("merger.post_projection_norm", width, kMergerEpsilon),
          .mlp = load_mlp(loader, c, "merger", width, c.merger_width, Bias::kNo)};
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& c,
                     const media::NormalizeTable& normalize) {
  const common::GridGeometry& g = c.grid;
  const std::int64_t width = c.hidden_size;
  const auto epsilon = static_cast<float>(c.rms_norm_eps);
  Weights w;
  w.inv_freq = common::inverse_frequencies(loader, c.head_dim(), c.rope_theta);
  w.patch_embed = {.normalize = loader.constant(normalize),
                   .proj = loader.linear("patch_embed.proj", width,
                                         {3, g.temporal_patch_size, g.patch_size, g.patch_size})};
  if (c.has_table) {
    w.post_conv_layernorm = loader.rms_norm("post_conv_layernorm", width, epsilon);
    w.position_embedding = loader.f32("embeddings.position_embedding.weight",
                                      {c.position_side() * c.position_side(), width});
  }
  for (std::int64_t i = 0; i < c.depth; ++i) {
    const auto block = loader.block(i);
    w.blocks.push_back(load_block(loader, c, cat("blocks.", i)));
  }
  w.post_layernorm = loader.rms_norm("post_layernorm", width, epsilon);
  w.downsample =
      loader.conv("downsample", c.out_hidden_size, width, g.spatial_merge_size, Bias::kYes);
  w.merger = load_merger(loader, c);
  return w;
}

}  // namespace fovea::glm4v
