// The tensors of the tower and of its vector.
#include "models/common/vectors.h"
#include "models/common/views/siglip.h"
#include "models/siglip2/model.h"

namespace fovea::siglip2 {

Weights load_weights(common::WeightLoader& loader, const Config& c, TowerOutput output,
                     const media::NormalizeTable& normalize) {
  const std::int64_t width = c.blocks.hidden_size;
  Weights w;
  w.patch_embedding = {
      .normalize = loader.constant(normalize),
      .proj = loader.channels_last("embeddings.patch_embedding", width, c.grid.patch_dim() / 3,
                                   common::WeightLoader::Bias::kYes)};
  w.position_embedding = loader.f32("embeddings.position_embedding.weight", {c.num_patches, width});
  w.blocks = common::load_siglip_blocks(loader, "", c.blocks);
  w.post_layernorm = common::load_siglip_norm(loader, "", c.blocks);
  if (output == TowerOutput::kRows) return w;
  w.head = common::load_pooling_head(loader, "head.", c.blocks);
  if (output == TowerOutput::kUnitVectors) w.unit = common::unit_norm(loader, width);
  return w;
}

}  // namespace fovea::siglip2
