// The tensors of the tower and the projector.
#include "models/llava/model.h"

namespace fovea::llava {

namespace {

constexpr const char* kTower = "vision_tower.vision_model.";

common::Mlp load_projector(common::WeightLoader& loader, const Config& c) {
  using Bias = common::WeightLoader::Bias;
  const Bias bias = c.multimodal_projector_bias ? Bias::kYes : Bias::kNo;
  const std::int64_t width = c.text_hidden_size;
  return {
      .fc1 = loader.linear("multi_modal_projector.linear_1", width, {c.tower.hidden_size}, bias),
      .fc2 = loader.linear("multi_modal_projector.linear_2", width, {width}, bias),
      .activation = c.projector_hidden_act};
}

}  // namespace

Weights load_weights(common::WeightLoader& loader, const Config& c,
                     const media::NormalizeTable& normalize) {
  Weights w;
  if (c.kind == Tower::kClip) {
    w.tower = common::load_clip(loader, kTower, c.tower, normalize);
  } else {
    w.tower = common::load_siglip(loader, kTower, c.tower, normalize);
  }
  w.projector = load_projector(loader, c);
  if (c.format != Format::kLlava) w.image_newline = loader.row("image_newline", c.text_hidden_size);
  return w;
}

}  // namespace fovea::llava
