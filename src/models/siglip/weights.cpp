// The tensors of the tower and of its vector.
#include "models/common/vectors.h"
#include "models/siglip/model.h"

namespace fovea::siglip {

Weights load_weights(common::WeightLoader& loader, const common::SiglipConfig& c,
                     TowerOutput output, const media::NormalizeTable& normalize) {
  Weights w{.tower = common::load_siglip(loader, "", c, normalize),
            .post_layernorm = common::load_siglip_norm(loader, "", c),
            .head = {},
            .unit = {}};
  if (output == TowerOutput::kRows) return w;
  w.head = common::load_pooling_head(loader, "head.", c);
  if (output == TowerOutput::kUnitVectors) w.unit = common::unit_norm(loader, c.hidden_size);
  return w;
}

}  // namespace fovea::siglip
