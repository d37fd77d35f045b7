// The tensors of the tower and the projector.
#include <algorithm>

#include "models/cohere_vision/model.h"

namespace fovea::cohere_vision {

namespace {

constexpr const char* kTower = "vision_tower.vision_model.";

common::LayerNorm load_norm(common::WeightLoader& loader, const Config& c) {
  if (c.format == Format::kCohere2) return common::load_siglip_norm(loader, kTower, c.tower);
  return loader.layer_norm("multi_modal_projector.layernorm", c.joined_width(),
                           static_cast<float>(c.adapter_layer_norm_eps));
}

/// The layer is stored with the gate behind what it gates.
common::GatedMlp load_projector(common::WeightLoader& loader, const Config& c) {
  const std::int64_t joined = c.joined_width();
  const std::int64_t wide = c.alignment_intermediate_size;
  const auto exchange_halves = [](std::vector<float>& weight, std::vector<float>& bias) {
    for (std::vector<float>* const rows : {&weight, &bias}) {
      std::rotate(rows->begin(), rows->begin() + std::ssize(*rows) / 2, rows->end());
    }
  };
  return {.gate_up = loader.linear_from("multi_modal_projector.linear_1", {wide, joined}, joined,
                                        exchange_halves),
          .down = loader.linear("multi_modal_projector.linear_2", c.text_hidden_size, {wide / 2}),
          .activation = ops::Activation::kSilu};
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& c,
                     const media::NormalizeTable& normalize) {
  return {.tower = common::load_siglip(loader, kTower, c.tower, normalize),
          .norm = load_norm(loader, c),
          .projector = load_projector(loader, c)};
}

}  // namespace fovea::cohere_vision
