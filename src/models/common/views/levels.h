#pragma once

#include <cstdint>
#include <string>

#include "media/resize/resize_fine.h"
#include "models/common/geometry.h"
#include "models/common/layers.h"
#include "models/common/processor_file.h"
#include "models/common/weight_loader.h"

namespace fovea::common {

/// The patch embedding of views that are bytes, or of several planes, levels (pixel_levels.h).
/// @param name of a convolution with a bias. @param filter that levels were resized with.
[[nodiscard]] PatchEmbedding load_patch_embedding(WeightLoader& loader, const std::string& name,
                                                  std::int64_t features, const SquareView& view,
                                                  const PixelScaling& scaling,
                                                  media::FineFilter filter);

}  // namespace fovea::common
