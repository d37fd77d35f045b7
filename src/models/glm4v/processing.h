#pragma once

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "models/common/grid/processor.h"

namespace fovea::glm4v {

/// Sizes, sampling and scaling of images and videos, from the processor files.
/// @throws as common::read_grid_processor. Source: docs/reference/glm4v.md, "Processing" and
/// "Sampled frames".
[[nodiscard]] common::GridProcessing read_processing(const checkpoint::HfConfig& files,
                                                     const common::GridGeometry& grid,
                                                     const MediaOptions& media);

}  // namespace fovea::glm4v
