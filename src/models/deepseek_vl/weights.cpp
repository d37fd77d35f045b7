// The tensors of the tower and the aligner.
#include "models/deepseek_vl/model.h"

namespace fovea::deepseek_vl {

Weights load_weights(common::WeightLoader& loader, const Config& c,
                     const media::NormalizeTable& normalize) {
  constexpr const char* kTower = "vision_model.vision_model.";
  const std::int64_t width = c.text_hidden_size;
  return {.tower = common::load_siglip(loader, kTower, c.tower, normalize),
          .post_norm = common::load_siglip_norm(loader, kTower, c.tower),
          .aligner = {.fc1 = loader.linear("aligner.linear1", width, {c.tower.hidden_size}),
                      .fc2 = loader.linear("aligner.linear2", width, {width}),
                      .activation = ops::Activation::kGeluErf}};
}

}  // namespace fovea::deepseek_vl
