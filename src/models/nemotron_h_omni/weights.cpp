// The tensors of the tower and its projector.
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "models/common/blocks.h"
#include "models/common/pixel_levels.h"
#include "models/nemotron_h_omni/model.h"

namespace fovea::nemotron_h_omni {

namespace {

using Bias = common::WeightLoader::Bias;

constexpr float kProjectorEpsilon = 1e-5f;  // fixed in the reference, not in config.json

/// The part for one frame of a patch embedding whose stored weight is [hidden_size, frames * 3 *
/// patch_size^2], over the levels of that frame.
ops::PackedLinear load_embedder(common::WeightLoader& loader, const Config& c,
                                const common::PixelScaling& scaling, const std::string& name,
                                std::int64_t frames, std::int64_t frame) {
  const std::int64_t pixels = c.grid.patch_size * c.grid.patch_size;
  const std::int64_t stored = frames * 3 * pixels;
  const auto split =
      common::split_levels(pixels, media::level_scale(media::FineFilter::kBicubic), scaling);
  const auto of_frame = [&](std::vector<float>& weight, std::vector<float>& bias) {
    std::vector<float> part;
    for (std::int64_t row = 0; row < c.hidden_size; ++row) {
      const auto first = weight.begin() + row * stored + frame * 3 * pixels;
      part.insert(part.end(), first, first + 3 * pixels);
    }
    weight = std::move(part);
    split(weight, bias);
  };
  return loader.linear_from(name, {c.hidden_size, stored},
                            3 * pixels * static_cast<std::int64_t>(media::kLevelBytes), of_frame,
                            Bias::kNo);
}

/// The norm behind the tower, which is without weights unless the checkpoint stores some.
common::LayerNorm load_final_norm(common::WeightLoader& loader, const Config& c) {
  const std::string name = "vision_projector.vision_final_layernorm";
  if (loader.stores(name + ".weight")) {
    return loader.layer_norm(name, c.hidden_size, static_cast<float>(c.layer_norm_eps));
  }
  const auto width = static_cast<std::size_t>(c.hidden_size);
  return {.weight = loader.constant(std::vector<float>(width, 1.0f), {c.hidden_size}),
          .bias = loader.constant(std::vector<float>(width, 0.0f), {c.hidden_size}),
          .epsilon = static_cast<float>(c.layer_norm_eps)};
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& c,
                     const common::PixelScaling& scaling) {
  const std::string tower = "vision_model.radio_model.model.";
  const std::string patches = tower + "patch_generator.";
  const std::int64_t width = c.hidden_size;
  const std::int64_t places = c.position_side() * c.position_side();
  const std::int64_t wide = c.projector_hidden_size;
  Weights w;
  w.levels = loader.constant(common::level_table());
  w.embedder = load_embedder(loader, c, scaling, patches + "embedder", 1, 0);
  w.video_embedder = {load_embedder(loader, c, scaling, patches + "video_embedder", 2, 0),
                      load_embedder(loader, c, scaling, patches + "video_embedder", 2, 1)};
  w.class_rows = loader.f32(patches + "cls_token.token", {c.class_rows(), width});
  w.position_table = loader.f32(patches + "pos_embed", {1, places, width}, {places, width});
  common::BlockShape shape = common::block_shape(c);
  shape.qkv_bias = c.qkv_bias ? Bias::kYes : Bias::kNo;
  // Published checkpoints have no layer scales; those that transformers trained and saved do.
  const common::BlockNames names{.scale1 = "layer_scale1.lambda1",
                                 .scale2 = "layer_scale2.lambda1"};
  w.blocks = common::load_blocks(loader, tower + "blocks.", names, shape, c.num_hidden_layers);
  if (c.vision_final_layernorm) w.final_norm = load_final_norm(loader, c);
  w.projector_norm = loader.rms_norm("mlp1.0", c.joined_width(), kProjectorEpsilon);
  w.projector = {.fc1 = loader.linear("mlp1.1", wide, {c.joined_width()}, Bias::kNo),
                 .fc2 = loader.linear("mlp1.3", c.text_hidden_size, {wide}, Bias::kNo),
                 .activation = ops::Activation::kRelu2};
  return w;
}

}  // namespace fovea::nemotron_h_omni
