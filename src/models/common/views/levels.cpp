// Patch embeddings of square views.
#include "models/common/views/levels.h"

#include "models/common/pixel_levels.h"

namespace fovea::common {

PatchEmbedding load_patch_embedding(WeightLoader& loader, const std::string& name,
                                    std::int64_t features, const SquareView& view,
                                    const PixelScaling& scaling, media::FineFilter filter) {
  const std::int64_t patch = view.patch_px;
  if (view.planes == 1) {
    return {.normalize = loader.constant(scaling.table()),
            .proj = loader.linear(name, features, {3, patch, patch})};
  }
  return {
      .normalize = loader.constant(level_table()),
      .proj = loader.linear_from(name, {features, 3, patch, patch}, 3 * view.planes * patch * patch,
                                 split_levels(patch * patch, media::level_scale(filter), scaling))};
}

}  // namespace fovea::common
