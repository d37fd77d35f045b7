// The tensors of the towers. Layer scales are multiplied into the layers before them, positions are
// resized to the view.
#include <cmath>
#include <numbers>
#include <string>

#include "core/check.h"
#include "models/common/position_table.h"
#include "models/common/vectors.h"
#include "models/common/views/levels.h"
#include "models/dino/model.h"

namespace fovea::dino {

namespace {

/// The names of the same tensors in both versions.
struct Names {
  std::string patches, layers, q, k, v, proj, gate, up, down, norm;
};

Names names_of(const Config& c) {
  if (c.version == Version::kV2) {
    return {.patches = "embeddings.patch_embeddings.projection",
            .layers = "encoder.layer.",
            .q = "attention.attention.query",
            .k = "attention.attention.key",
            .v = "attention.attention.value",
            .proj = "attention.output.dense",
            .gate = "",
            .up = c.gated_mlp ? "mlp.weights_in" : "mlp.fc1",
            .down = c.gated_mlp ? "mlp.weights_out" : "mlp.fc2",
            .norm = "layernorm"};
  }
  return {.patches = "embeddings.patch_embeddings",
          .layers = "layer.",
          .q = "attention.q_proj",
          .k = "attention.k_proj",
          .v = "attention.v_proj",
          .proj = "attention.o_proj",
          .gate = "mlp.gate_proj",
          .up = "mlp.up_proj",
          .down = "mlp.down_proj",
          .norm = "norm"};
}

/// A layer, whose names begin with `name`.
Layer load_layer(common::WeightLoader& loader, const Config& c, const Names& names,
                 const std::string& name) {
  constexpr auto kYes = common::WeightLoader::Bias::kYes;
  const std::int64_t width = c.hidden_size;
  const std::int64_t wide = c.intermediate_size;
  const auto epsilon = static_cast<float>(c.layer_norm_eps);
  Layer layer{
      .norm1 = loader.layer_norm(name + "norm1", width, epsilon),
      .norm2 = loader.layer_norm(name + "norm2", width, epsilon),
      .attn = {.qkv = loader.fused({.parts = {name + names.q, name + names.k, name + names.v},
                                    .part_rows = width,
                                    .in_sizes = {width},
                                    .biased = {true, c.key_bias, true}},
                                   kYes),
               .proj = loader.scaled_linear(name + names.proj, name + "layer_scale1.lambda1", width,
                                            width),
               .num_heads = c.num_attention_heads},
      .mlp = {}};
  ops::PackedLinear down =
      loader.scaled_linear(name + names.down, name + "layer_scale2.lambda1", width, wide);
  if (!c.gated_mlp) {
    layer.mlp.kind = common::Mlp{.fc1 = loader.linear(name + names.up, wide, {width}),
                                 .fc2 = std::move(down),
                                 .activation = c.hidden_act};
    return layer;
  }
  // DINOv2 stores gate and up as one layer.
  layer.mlp.kind = common::GatedMlp{
      .gate_up = names.gate.empty()
                     ? loader.linear(name + names.up, 2 * wide, {width})
                     : loader.fused({name + names.gate, name + names.up}, wide, {width}, kYes),
      .down = std::move(down),
      .activation = c.hidden_act};
  return layer;
}

/// The table of DINOv2 for a view: registers have no positions.
Tensor load_positions(common::WeightLoader& loader, const Tower& tower) {
  const Config& c = tower.config;
  const std::int64_t width = c.hidden_size;
  return loader.f32_from(
      "embeddings.position_embeddings", {1, 1 + c.trained.patches(), width}, {tower.rows(), width},
      [&](std::span<const float> table) {
        std::vector<float> positions = common::resize_class_table(
            table, c.trained.grid(), tower.view.grid(), width, c.position_filter);
        positions.insert(positions.begin() + width,
                         static_cast<std::size_t>(c.num_register_tokens * width), 0.0f);
        return positions;
      });
}

/// A patch turns by 2 pi / theta^(4 j / head_dim) times its place between -1 and 1, which is its
/// place in `positions` by the patches of a side.
Tensor inverse_frequencies(common::WeightLoader& loader, const Tower& tower) {
  const std::int64_t quarter = tower.config.head_dim() / 4;
  std::vector<float> values;
  for (std::int64_t i = 0; i < 2 * quarter; ++i) {
    const double exponent = static_cast<double>(i % quarter) / static_cast<double>(quarter);
    values.push_back(
        static_cast<float>(2 * std::numbers::pi / std::pow(tower.config.rope_theta, exponent) /
                           static_cast<double>(tower.view.grid())));
  }
  return loader.constant(values, {2 * quarter});
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Tower& tower,
                     const common::PixelScaling& scaling) {
  const Config& c = tower.config;
  const std::int64_t width = c.hidden_size;
  const Names names = names_of(c);
  Weights w;
  w.patch_embedding = common::load_patch_embedding(loader, names.patches, width, tower.view,
                                                   scaling, media::FineFilter::kBilinear);
  w.cls_token = loader.f32("embeddings.cls_token", {1, 1, width});
  w.cls_token.shape = {1, width};
  if (c.num_register_tokens > 0) {
    w.register_tokens = loader.f32("embeddings.register_tokens", {1, c.num_register_tokens, width});
    w.register_tokens->shape = {c.num_register_tokens, width};
  }
  if (c.version == Version::kV2) {
    w.positions = load_positions(loader, tower);
  } else {
    w.inv_freq = inverse_frequencies(loader, tower);
  }
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const auto block = loader.block({.index = i,
                                     .count = c.num_hidden_layers,
                                     .native_of_nine = c.gated_mlp ? kGatedNativeOfNine : 1});
    w.layers.push_back(load_layer(loader, c, names, cat(names.layers, i, ".")));
  }
  w.layernorm = loader.layer_norm(names.norm, width, static_cast<float>(c.layer_norm_eps));
  if (tower.output == TowerOutput::kUnitVectors) w.unit = common::unit_norm(loader, width);
  return w;
}

}  // namespace fovea::dino
