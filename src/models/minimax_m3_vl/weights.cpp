// The tensors of the tower and the projector.
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "models/common/rope.h"
#include "models/minimax_m3_vl/model.h"

namespace fovea::minimax_m3_vl {

namespace {

using Bias = common::WeightLoader::Bias;

/// [3, head_dim / 2] f32: theta^(-i / n) of time, then of rows, then of columns, i < n each. Angles
/// behind them are 0. What y turns is the first row, what x turns the second, what time turns the
/// third.
Tensor frequencies(common::WeightLoader& loader, const Config& c) {
  constexpr std::int64_t kAxes = 3;
  constexpr std::int64_t kRowOfBand[kAxes] = {2, 0, 1};  // time, y, x
  const std::int64_t half = c.head_dim() / 2;
  const std::int64_t angles = c.axis_angles();
  std::vector<float> values(static_cast<std::size_t>(kAxes * half), 0.0f);
  for (std::int64_t band = 0; band < kAxes; ++band) {
    for (std::int64_t i = 0; i < angles; ++i) {
      const float exponent = static_cast<float>(2 * i) / static_cast<float>(2 * angles);
      values[static_cast<std::size_t>(kRowOfBand[band] * half + band * angles + i)] =
          1.0f / std::pow(static_cast<float>(c.rope_theta), exponent);
    }
  }
  return loader.constant(values, {kAxes, half});
}

/// The reference turns dims j and j + n of a head, j < n = 3 * axis_angles; those behind 2 n stay
/// what they are, and are pairs of their own here, whose angles are 0.
common::RowOrder row_order(const Config& c) {
  const std::int64_t half = c.head_dim() / 2;
  const std::int64_t turned = 3 * c.axis_angles();
  common::RowOrder order;
  for (std::int64_t i = 0; i < c.head_dim(); ++i) {
    const std::int64_t pair = i % half;
    const std::int64_t second = i / half;  // of a pair
    order.push_back(pair < turned ? pair + second * turned
                                  : 2 * turned + (pair - turned) + second * (half - turned));
  }
  return order;
}

common::Block load_block(common::WeightLoader& loader, const Config& c, const std::string& name) {
  const std::int64_t width = c.hidden_size;
  const std::int64_t wide = c.intermediate_size;
  const auto epsilon = static_cast<float>(c.layer_norm_eps);
  const std::string attn = name + ".self_attn.";
  return {.norm1 = loader.layer_norm(name + ".layer_norm1", width, epsilon),
          .norm2 = loader.layer_norm(name + ".layer_norm2", width, epsilon),
          .attn = {.qkv = loader.qkv({attn + "q_proj", attn + "k_proj", attn + "v_proj"}, width,
                                     row_order(c)),
                   .proj = loader.linear(attn + "out_proj", width, {width}),
                   .num_heads = c.num_attention_heads},
          .mlp = {.fc1 = loader.linear(name + ".mlp.fc1", wide, {width}),
                  .fc2 = loader.linear(name + ".mlp.fc2", width, {wide}),
                  .activation = c.hidden_act}};
}

/// linear_2(gelu(linear_1(x))).
common::Mlp load_mlp(common::WeightLoader& loader, const Config& c, const std::string& name,
                     std::int64_t features) {
  const std::int64_t wide = c.projector_hidden_size;
  return {.fc1 = loader.linear(name + ".linear_1", wide, {features}),
          .fc2 = loader.linear(name + ".linear_2", c.text_hidden_size, {wide}),
          .activation = ops::Activation::kGeluErf};
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& c,
                     const media::NormalizeTable& normalize) {
  const std::string tower = "vision_tower.vision_model.";
  const std::int64_t patch = c.grid.patch_size;
  Weights w;
  w.inv_freq = frequencies(loader, c);
  w.patch_embedding = {
      .normalize = loader.constant(normalize),
      .proj = loader.linear(tower + "embeddings.patch_embedding", c.hidden_size,
                            {3, c.grid.temporal_patch_size, patch, patch}, Bias::kNo)};
  w.pre_layrnorm = loader.layer_norm(tower + "pre_layrnorm", c.hidden_size,
                                     static_cast<float>(c.layer_norm_eps));
  std::vector<common::Block> blocks;
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const auto block = loader.block({.index = i, .count = c.num_hidden_layers});
    blocks.push_back(load_block(loader, c, cat(tower, "encoder.layers.", i)));
  }
  w.blocks = loader.block_sequence(std::move(blocks));
  w.projector = load_mlp(loader, c, "multi_modal_projector", c.hidden_size);
  w.patch_merge_mlp = load_mlp(loader, c, "patch_merge_mlp", c.joined_width());
  return w;
}

}  // namespace fovea::minimax_m3_vl
