// The tensors of the tower.
#include <cmath>
#include <span>
#include <string>
#include <utility>

#include "core/check.h"
#include "models/common/rope.h"
#include "models/gemma4/model.h"

namespace fovea::gemma4 {

namespace {

using Bias = common::WeightLoader::Bias;

constexpr std::int64_t kVector = 8;  // kernels work on whole vectors

/// Angles of rows come first here (ops/projected_attention.h). The reference turns the first half
/// of a head with the column, its own halves with each other, and the second half with the row.
common::RowOrder row_order(std::int64_t head_dim) {
  const std::int64_t quarter = head_dim / 4;
  common::RowOrder order;
  for (const std::int64_t first : {2, 0, 3, 1}) {
    for (std::int64_t i = 0; i < quarter; ++i) order.push_back(first * quarter + i);
  }
  return order;
}

/// A norm of heads of q or k, in the order of their rows.
Tensor load_head_norm(common::WeightLoader& loader, const std::string& name,
                      const common::RowOrder& order) {
  const Shape shape{std::ssize(order)};
  const auto reorder = [&](std::span<const float> stored) {
    std::vector<float> values;
    for (const std::int64_t row : order) values.push_back(stored[static_cast<std::size_t>(row)]);
    return values;
  };
  return loader.f32_from(name + ".weight", shape, shape, reorder);
}

/// The rows of a layer to heads, in the order of each head.
std::vector<std::int64_t> rows_of_heads(const common::RowOrder& order, std::int64_t num_heads) {
  std::vector<std::int64_t> rows;
  for (std::int64_t head = 0; head < num_heads; ++head) {
    for (const std::int64_t row : order) rows.push_back(head * std::ssize(order) + row);
  }
  return rows;
}

Block load_block(common::WeightLoader& loader, const Config& c, const std::string& name) {
  const std::int64_t width = c.hidden_size;
  const std::int64_t heads = c.attention_width();
  const std::int64_t wide = c.intermediate_size;
  const std::string attn = name + ".self_attn.";
  const std::string mlp = name + ".mlp.";
  const common::RowOrder order = row_order(c.head_dim);
  const std::vector<std::int64_t> rows = rows_of_heads(order, c.num_attention_heads);
  const auto norm = [&](const char* end) {
    return loader.rms_norm(name + end, width, static_cast<float>(c.rms_norm_eps));
  };
  const auto linears = [&](const std::vector<common::StoredLayer>& layers,
                           const common::FusedWeights& shape) {
    return common::load_linears(loader, layers, shape, c.use_clipped_linears);
  };
  return {
      .input_layernorm = norm(".input_layernorm"),
      .post_attention_layernorm = norm(".post_attention_layernorm"),
      .pre_feedforward_layernorm = norm(".pre_feedforward_layernorm"),
      .post_feedforward_layernorm = norm(".post_feedforward_layernorm"),
      .qkv = linears({{attn + "q_proj", rows}, {attn + "k_proj", rows}, {attn + "v_proj"}},
                     {.part_rows = heads, .in_sizes = {width}}),
      .o_proj = linears({{attn + "o_proj"}}, {.part_rows = width, .in_sizes = {heads}}),
      .q_norm = load_head_norm(loader, attn + "q_norm", order),
      .k_norm = load_head_norm(loader, attn + "k_norm", order),
      .gate_up = linears({{mlp + "gate_proj"}, {mlp + "up_proj"}},
                         {.part_rows = wide, .in_sizes = {width}, .row_multiple = kVector}),
      .down_proj = linears({{mlp + "down_proj"}},
                           {.part_rows = width, .in_sizes = {wide}, .column_multiple = kVector}),
      .activation = c.hidden_activation,
      .num_heads = c.num_attention_heads};
}

/// One of the two tables that are stored as [2, position_embedding_size, hidden_size].
Tensor load_positions(common::WeightLoader& loader, const Config& c, std::size_t number) {
  const std::int64_t size = c.position_embedding_size;
  const auto cut = [number](std::span<const float> both) {
    const auto half = both.subspan(number * both.size() / 2, both.size() / 2);
    return std::vector<float>(half.begin(), half.end());
  };
  return loader.f32_from("vision_tower.patch_embedder.position_embedding_table",
                         {2, size, c.hidden_size}, {size, c.hidden_size}, cut);
}

/// The reference multiplies the mean by the root of hidden_size first: what it shifts by becomes
/// smaller by it, and what it scales by larger.
Standardization load_standardization(common::WeightLoader& loader, const Config& c) {
  const float root = std::sqrt(static_cast<float>(c.hidden_size));
  const auto load = [&](const char* name, float factor) {
    const Shape shape{c.hidden_size};
    const auto times = [factor](std::span<const float> stored) {
      std::vector<float> values(stored.begin(), stored.end());
      for (float& value : values) value *= factor;
      return values;
    };
    return loader.f32_from(cat("vision_tower.", name), shape, shape, times);
  };
  return {.bias = load("std_bias", 1 / root), .scale = load("std_scale", root)};
}

Tensor ones(common::WeightLoader& loader, std::int64_t count) {
  return loader.constant(std::vector<float>(static_cast<std::size_t>(count), 1.0f), {count});
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& c,
                     const media::NormalizeTable& normalize) {
  const std::int64_t pixels = c.grid.patch_size * c.grid.patch_size;
  Weights w;
  w.inv_freq = common::inverse_frequencies(loader, c.head_dim, c.rope_theta);
  w.patch_embedder = {.normalize = loader.constant(normalize),
                      .proj = loader.channels_last("vision_tower.patch_embedder.input_proj",
                                                   c.hidden_size, pixels, Bias::kNo)};
  w.x_positions = load_positions(loader, c, 0);
  w.y_positions = load_positions(loader, c, 1);
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const auto block = loader.block(
        {.index = i, .count = c.num_hidden_layers, .native_of_nine = kGatedNativeOfNine});
    w.blocks.push_back(load_block(loader, c, cat("vision_tower.encoder.layers.", i)));
  }
  w.ones = ones(loader, c.head_dim);
  if (c.standardize) w.standardization = load_standardization(loader, c);
  // The root of hidden_size cancels in the norm, but for epsilon.
  const double epsilon =
      c.standardize ? c.rms_norm_eps : c.rms_norm_eps / static_cast<double>(c.hidden_size);
  w.pooled_norm = {.weight = ones(loader, c.hidden_size), .epsilon = static_cast<float>(epsilon)};
  w.embedding_projection = loader.linear("embed_vision.embedding_projection", c.text_hidden_size,
                                         {c.hidden_size}, Bias::kNo);
  return w;
}

}  // namespace fovea::gemma4
