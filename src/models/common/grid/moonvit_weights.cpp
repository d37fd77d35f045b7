// The tensors of MoonViT.
#include "models/common/grid/moonvit.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"

namespace fovea::common {

namespace {

constexpr float kNormEpsilon = 1e-5f;  // fixed in the reference, not in config.json

/// Frequency i turns pair 2 i of a head with the column and pair 2 i + 1 with the row. Angles of
/// rows come first here (ops/projected_attention.h).
RowOrder row_order(std::int64_t head_dim) {
  std::vector<std::int64_t> pairs;
  for (std::int64_t i = 0; i < head_dim / 4; ++i) pairs.push_back(2 * i + 1);
  for (std::int64_t i = 0; i < head_dim / 4; ++i) pairs.push_back(2 * i);
  return halves_order(pairs);
}

Block load_block(WeightLoader& loader, const MoonVitConfig& c, const std::string& name) {
  const std::int64_t width = c.hidden_size;
  const std::int64_t wide = c.intermediate_size;
  return {.norm1 = loader.layer_norm(name + ".norm0", width, kNormEpsilon),
          .norm2 = loader.layer_norm(name + ".norm1", width, kNormEpsilon),
          .attn = {.qkv = loader.qkv({name + ".wqkv"}, width, row_order(c.head_dim())),
                   .proj = loader.linear(name + ".wo", width, {width}),
                   .num_heads = c.num_attention_heads},
          .mlp = {.fc1 = loader.linear(name + ".mlp.fc0", wide, {width}),
                  .fc2 = loader.linear(name + ".mlp.fc1", width, {wide}),
                  .activation = c.hidden_act}};
}

/// [1 + init_pos_emb_time, hidden_size]: zeros for an image, then the sinusoids of the frames of a
/// chunk: sin(t f_i), then cos(t f_i), with f_i = 10000^(-2 i / hidden_size).
Tensor time_table(WeightLoader& loader, const MoonVitConfig& c) {
  const std::int64_t width = c.hidden_size;
  const std::int64_t half = width / 2;
  std::vector<float> table(static_cast<std::size_t>((1 + c.init_pos_emb_time) * width));
  for (std::int64_t t = 0; t < c.init_pos_emb_time; ++t) {
    float* const row = table.data() + (1 + t) * width;
    for (std::int64_t i = 0; i < half; ++i) {
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(width);
      const double angle = static_cast<double>(t) * std::pow(10000.0, exponent);
      row[i] = static_cast<float>(std::sin(angle));
      row[half + i] = static_cast<float>(std::cos(angle));
    }
  }
  return loader.constant(table, {1 + c.init_pos_emb_time, width});
}

}  // namespace

MoonVitWeights load_moonvit(WeightLoader& loader, const MoonVitConfig& c,
                            const ProjectorNames& names, const media::NormalizeTable& normalize) {
  const std::int64_t patch = c.grid.patch_size;
  MoonVitWeights w;
  w.inv_freq = inverse_frequencies(loader, c.head_dim(), c.rope_theta);
  w.patch_embed = {
      .normalize = loader.constant(normalize),
      .proj = loader.linear("vision_tower.patch_embed.proj", c.hidden_size, {3, patch, patch})};
  w.pos_emb = loader.f32("vision_tower.patch_embed.pos_emb.weight",
                         {c.init_pos_emb_height, c.init_pos_emb_width, c.hidden_size},
                         {c.init_pos_emb_height * c.init_pos_emb_width, c.hidden_size});
  if (c.init_pos_emb_time > 0) w.times = time_table(loader, c);
  std::vector<Block> blocks;
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const auto block = loader.block({.index = i, .count = c.num_hidden_layers});
    blocks.push_back(load_block(loader, c, cat("vision_tower.encoder.blocks.", i)));
  }
  w.blocks = loader.block_sequence(std::move(blocks));
  w.final_layernorm =
      loader.layer_norm("vision_tower.encoder.final_layernorm", c.hidden_size, kNormEpsilon);
  const std::int64_t joined = c.joined_width();
  w.pre_norm =
      loader.layer_norm(names.pre_norm, c.hidden_size, static_cast<float>(c.projector_ln_eps));
  w.projector = {.fc1 = loader.linear(names.fc1, joined, {joined}),
                 .fc2 = loader.linear(names.fc2, c.text_hidden_size, {joined}),
                 .activation = c.projector_hidden_act};
  return w;
}

}  // namespace fovea::common
