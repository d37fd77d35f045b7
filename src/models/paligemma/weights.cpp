// The tensors of the tower and the projector.
#include "models/paligemma/model.h"

namespace fovea::paligemma {

Weights load_weights(common::WeightLoader& loader, const Config& c,
                     const media::NormalizeTable& normalize) {
  constexpr const char* kTower = "vision_tower.vision_model.";
  return {.tower = common::load_siglip(loader, kTower, c.tower, normalize),
          .post_norm = common::load_siglip_norm(loader, kTower, c.tower),
          .projection = loader.linear("multi_modal_projector.linear", c.projection_dim,
                                      {c.tower.hidden_size})};
}

}  // namespace fovea::paligemma
