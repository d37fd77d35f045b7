// The tensors of the tower. Positions are resized once, for the two sizes of views.
#include "models/step3_vl/model.h"

#include <algorithm>

#include "core/check.h"
#include "models/common/position_table.h"
#include "models/common/views/levels.h"

namespace fovea::step3_vl {

namespace {

using Bias = common::WeightLoader::Bias;

/// A table whose first row comes kClassRows times.
std::vector<float> repeat_first(std::span<const float> table, std::int64_t cols) {
  std::vector<float> result;
  for (std::int64_t i = 1; i < Config::kClassRows; ++i) {
    result.insert(result.end(), table.begin(), table.begin() + cols);
  }
  result.insert(result.end(), table.begin(), table.end());
  return result;
}

Tensor load_positions(common::WeightLoader& loader, const Config& c,
                      const common::SquareView& view) {
  const std::int64_t stored = kViews[kGlobal].grid();
  return loader.f32_from(
      "vision_model.embeddings.position_embedding.weight", {1 + stored * stored, c.hidden_size},
      {Config::kClassRows + view.patches(), c.hidden_size}, [&](std::span<const float> table) {
        return repeat_first(common::resize_class_table(table, stored, view.grid(), c.hidden_size),
                            c.hidden_size);
      });
}

Layer load_layer(common::WeightLoader& loader, const Config& c, const std::string& name) {
  const std::int64_t width = c.hidden_size;
  const auto epsilon = static_cast<float>(c.layer_norm_eps);
  return {.attn = {.qkv = loader.linear(name + ".self_attn.qkv_proj", 3 * width, {width}),
                   .proj = loader.linear(name + ".self_attn.out_proj", width, {width}),
                   .num_heads = c.num_attention_heads},
          .layer_norm1 = loader.layer_norm(name + ".layer_norm1", width, epsilon),
          .mlp = {.fc1 = loader.linear(name + ".mlp.fc1", c.intermediate_size, {width}),
                  .fc2 = loader.linear(name + ".mlp.fc2", width, {c.intermediate_size}),
                  .activation = c.hidden_act},
          .layer_norm2 = loader.layer_norm(name + ".layer_norm2", width, epsilon)};
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& c) {
  const std::int64_t features = 2 * c.output_hidden_size;
  Weights w;
  const common::PixelScaling scaling{.image_mean = Config::kMean, .image_std = Config::kStd};
  w.patch_embedding =
      common::load_patch_embedding(loader, "vision_model.embeddings.patch_embedding", c.hidden_size,
                                   kViews[kGlobal], scaling, media::FineFilter::kBilinear);
  w.class_rows =
      loader.f32_from("vision_model.embeddings.class_embedding", {1, c.hidden_size},
                      {Config::kClassRows, c.hidden_size},
                      [&](std::span<const float> row) { return repeat_first(row, c.hidden_size); });
  for (std::size_t path = 0; path < kNumPaths; ++path) {
    w.positions[path] = load_positions(loader, c, kViews[path]);
  }
  for (std::int64_t i = 0; i < c.num_hidden_layers; ++i) {
    const auto block = loader.block({.index = i, .count = c.num_hidden_layers});
    w.layers.push_back(load_layer(loader, c, cat("vision_model.transformer.layers.", i)));
  }
  w.vit_downsampler =
      loader.conv("vit_downsampler", c.output_hidden_size, c.hidden_size, 2, Bias::kYes);
  w.vit_downsampler2 =
      loader.conv3x3("vit_downsampler2", features, c.output_hidden_size, 2, Bias::kYes);
  w.vit_large_projector =
      loader.linear("vit_large_projector", c.text_hidden_size, {features}, Bias::kIfStored);
  return w;
}

}  // namespace fovea::step3_vl
