// The tensors of the tower and its resampler.
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "models/common/rope.h"
#include "models/ernie4_5_vl/model.h"

namespace fovea::ernie4_5_vl {

namespace {

common::Block load_block(common::WeightLoader& loader, const Config& c, const std::string& name) {
  const std::int64_t width = c.hidden_size;
  const std::int64_t wide = c.intermediate_size;
  const auto epsilon = static_cast<float>(c.rms_norm_eps);
  return {.norm1 = loader.layer_norm(name + ".norm1", width, epsilon),
          .norm2 = loader.layer_norm(name + ".norm2", width, epsilon),
          .attn = {.qkv = loader.qkv(name + ".attn", width),
                   .proj = loader.linear(name + ".attn.proj", width, {width}),
                   .num_heads = c.num_heads},
          .mlp = {.fc1 = loader.linear(name + ".mlp.fc1", wide, {width}),
                  .fc2 = loader.linear(name + ".mlp.fc2", width, {wide}),
                  .activation = c.hidden_act}};
}

JoinedMlp load_joined(common::WeightLoader& loader, const Config& c, const std::string& name,
                      std::int64_t in_features) {
  const std::int64_t width = c.joined_width();
  return {.mlp = {.fc1 = loader.linear(name + ".0", width, {in_features}),
                  .fc2 = loader.linear(name + ".2", width, {width}),
                  .activation = ops::Activation::kGeluErf},
          .norm = loader.layer_norm(name + ".3", width, static_cast<float>(c.rms_norm_eps))};
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& c,
                     const media::NormalizeTable& normalize) {
  const std::string tower = "vision_model.";
  const std::string resampler = "model.resampler_model.";
  const std::int64_t width = c.joined_width();
  Weights w;
  w.inv_freq = common::inverse_frequencies(loader, c.head_dim(), c.rope_theta);
  w.patch_embed = {.normalize = loader.constant(normalize),
                   .proj = loader.linear(tower + "patch_embed.proj", c.hidden_size,
                                         {c.grid.patch_dim()}, common::WeightLoader::Bias::kNo)};
  std::vector<common::Block> blocks;
  for (std::int64_t i = 0; i < c.depth; ++i) {
    const auto block = loader.block({.index = i, .count = c.depth});
    blocks.push_back(load_block(loader, c, cat(tower, "blocks.", i)));
  }
  w.blocks = loader.block_sequence(std::move(blocks));
  w.ln = loader.layer_norm(tower + "ln", c.hidden_size, static_cast<float>(c.rms_norm_eps));
  w.spatial_linear = load_joined(loader, c, resampler + "spatial_linear", width);
  w.temporal_linear =
      load_joined(loader, c, resampler + "temporal_linear", c.grid.temporal_patch_size * width);
  w.mlp = loader.linear(resampler + "mlp", c.text_hidden_size, {width});
  w.after_norm = loader.rms_norm(resampler + "after_norm", c.text_hidden_size,
                                 static_cast<float>(c.text_rms_norm_eps));
  return w;
}

}  // namespace fovea::ernie4_5_vl
