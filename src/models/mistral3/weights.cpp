// The tensors of the tower.
#include <cmath>
#include <string>
#include <vector>

#include "core/check.h"
#include "models/mistral3/model.h"

namespace fovea::mistral3 {

namespace {

using Bias = common::WeightLoader::Bias;

constexpr float kNormEpsilon = 1e-5f;  // fixed in the reference, not in config.json

/// [head_dim / 2] f32: theta^(-2 k / head_dim), k = 0, 2, 4 ... for rows, then k = 1, 3, 5 ... for
/// columns.
Tensor alternating_frequencies(common::WeightLoader& loader, std::int64_t head_dim, double theta) {
  std::vector<float> values;  // in f32, as the reference computes them
  for (const std::int64_t first : {0, 1}) {
    for (std::int64_t k = first; k < head_dim / 2; k += 2) {
      const float exponent = static_cast<float>(2 * k) / static_cast<float>(head_dim);
      values.push_back(1.0f / std::pow(static_cast<float>(theta), exponent));
    }
  }
  return loader.constant(values, {head_dim / 2});
}

common::GatedBlock load_block(common::WeightLoader& loader, const Config& c,
                              const std::string& name) {
  const std::int64_t width = c.hidden_size;
  const std::string attn = name + ".attention";
  return {.norm1 = loader.rms_norm(name + ".attention_norm", width, kNormEpsilon),
          .norm2 = loader.rms_norm(name + ".ffn_norm", width, kNormEpsilon),
          .attn = {.qkv = loader.fused({attn + ".q_proj", attn + ".k_proj", attn + ".v_proj"},
                                       width, {width}, Bias::kNo),
                   .proj = loader.linear(attn + ".o_proj", width, {width}, Bias::kNo),
                   .num_heads = c.num_attention_heads},
          .mlp = loader.gated(name + ".feed_forward", width, c.intermediate_size, c.hidden_act,
                              Bias::kNo)};
}

PatchMerger load_merger(common::WeightLoader& loader, const Config& c, const std::string& name) {
  const std::int64_t width = c.hidden_size;
  return {.norm = loader.rms_norm(name + ".norm", width, static_cast<float>(c.text_rms_norm_eps)),
          .layer = loader.unfolded(name + ".patch_merger.merging_layer", width, width,
                                   c.grid.spatial_merge_size, Bias::kNo)};
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& c,
                     const media::NormalizeTable& normalize) {
  const bool light_on = c.format == Format::kLightOnOcr;
  const std::string tower = light_on ? "vision_encoder" : "vision_tower";
  const std::string projector = light_on ? "vision_projection" : "multi_modal_projector";
  const std::int64_t patch = c.grid.patch_size;
  const Bias bias = c.multimodal_projector_bias ? Bias::kYes : Bias::kNo;
  Weights w;
  w.inv_freq = alternating_frequencies(loader, c.head_dim(), c.rope_theta);
  w.patch_conv = {
      .normalize = loader.constant(normalize),
      .proj = loader.linear(tower + ".patch_conv", c.hidden_size, {3, patch, patch}, Bias::kNo)};
  w.ln_pre = loader.rms_norm(tower + ".ln_pre", c.hidden_size, kNormEpsilon);
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const auto block = loader.block(
        {.index = i, .count = c.num_hidden_layers, .native_of_nine = kGatedNativeOfNine});
    w.blocks.push_back(load_block(loader, c, cat(tower, ".transformer.layers.", i)));
  }
  if (c.format != Format::kPixtral) w.merger = load_merger(loader, c, projector);
  const std::int64_t text = c.text_hidden_size;
  w.projector = {.fc1 = loader.linear(projector + ".linear_1", text, {c.hidden_size}, bias),
                 .fc2 = loader.linear(projector + ".linear_2", text, {text}, bias),
                 .activation = c.projector_hidden_act};
  return w;
}

}  // namespace fovea::mistral3
