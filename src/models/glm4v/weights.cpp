// The tensors of the tower.
#include "models/glm4v/model.h"

#include "core/check.h"

namespace fovea::glm4v {

namespace {

using Bias = common::WeightLoader::Bias;

constexpr float kMergerEpsilon = 1e-5f;  // fixed in the reference, not in config.json
/// With fp8 half of the blocks are not quite enough (docs/quantization.md).
constexpr std::int64_t kNativeOfNine = 5;

common::GatedBlock load_block(common::WeightLoader& loader, const Config& c,
                              const std::string& name) {
  const std::int64_t width = c.hidden_size;
  const auto epsilon = static_cast<float>(c.rms_norm_eps);
  const Bias of_qkv = c.attention_bias ? Bias::kYes : Bias::kNo;
  const Bias of_others = c.has_table ? Bias::kNo : of_qkv;
  const auto head_norm = [&](const char* norm) {
    return c.has_table ? common::RmsNorm{} : loader.rms_norm(name + norm, c.head_dim(), epsilon);
  };
  return {.norm1 = loader.rms_norm(name + ".norm1", width, epsilon),
          .norm2 = loader.rms_norm(name + ".norm2", width, epsilon),
          .attn = {.qkv = loader.qkv(name + ".attn", width, of_qkv),
                   .proj = loader.linear(name + ".attn.proj", width, {width}, of_others),
                   .num_heads = c.num_heads,
                   .q_norm = head_norm(".attn.q_norm"),
                   .k_norm = head_norm(".attn.k_norm")},
          .mlp = loader.gated(name + ".mlp", width, c.mlp_width, c.hidden_act, of_others)};
}

Merger load_merger(common::WeightLoader& loader, const Config& c) {
  const std::int64_t width = c.out_hidden_size;
  return {.proj = loader.linear("merger.proj", width, {width}, Bias::kNo),
          .norm = loader.layer_norm("merger.post_projection_norm", width, kMergerEpsilon),
          .mlp = loader.gated("merger", width, c.merger_width, c.hidden_act, Bias::kNo)};
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
    const auto block =
        loader.block({.index = i, .count = c.depth, .native_of_nine = kNativeOfNine});
    w.blocks.push_back(load_block(loader, c, cat("blocks.", i)));
    w.blocks.back().mlp.limit = static_cast<float>(c.swiglu_limit);
  }
  w.post_layernorm = loader.rms_norm("post_layernorm", width, epsilon);
  w.downsample =
      loader.conv("downsample", c.out_hidden_size, width, g.spatial_merge_size, Bias::kYes);
  w.merger = load_merger(loader, c);
  w.merger.mlp.limit = static_cast<float>(c.swiglu_limit);
  return w;
}

}  // namespace fovea::glm4v
