// The tensors of the tower and of its vector.
#include "models/clip/model.h"
#include "models/common/vectors.h"

namespace fovea::clip {

Weights load_weights(common::WeightLoader& loader, const Config& c, TowerOutput output,
                     const media::NormalizeTable& normalize) {
  Weights w{.tower = common::load_clip(loader, c.tower_name, c.tower, normalize),
            .post_layernorm = {},
            .visual_projection = {},
            .unit = {}};
  if (output == TowerOutput::kRows) return w;
  w.post_layernorm = common::load_siglip_norm(loader, c.tower_name, c.tower);
  if (c.projection_dim > 0) {
    w.visual_projection = loader.linear("visual_projection", c.projection_dim,
                                        {c.tower.hidden_size}, common::WeightLoader::Bias::kNo);
  }
  if (output == TowerOutput::kUnitVectors) w.unit = common::unit_norm(loader, c.vector_width());
  return w;
}

}  // namespace fovea::clip
