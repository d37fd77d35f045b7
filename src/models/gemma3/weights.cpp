// The tensors of the tower and the projector.
#include "models/gemma3/model.h"

namespace fovea::gemma3 {

namespace {

constexpr const char* kTower = "vision_tower.vision_model.";

/// A norm that multiplies by 1 + weight.
common::RmsNorm load_norm(common::WeightLoader& loader, const Config& c) {
  const Shape shape{c.tower.hidden_size};
  const auto add_one = [](std::span<const float> weight) {
    std::vector<float> sum;
    for (const float value : weight) sum.push_back(1 + value);
    return sum;
  };
  return {.weight = loader.f32_from("multi_modal_projector.mm_soft_emb_norm.weight", shape, shape,
                                    add_one),
          .epsilon = static_cast<float>(c.tower.layer_norm_eps)};
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& c,
                     const media::NormalizeTable& normalize) {
  return {.tower = common::load_siglip(loader, kTower, c.tower, normalize),
          .post_norm = common::load_siglip_norm(loader, kTower, c.tower),
          .pooled_norm = load_norm(loader, c),
          .projection = loader.transposed("multi_modal_projector.mm_input_projection_weight",
                                          c.tower.hidden_size, c.text_hidden_size)};
}

}  // namespace fovea::gemma3
