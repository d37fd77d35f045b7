#pragma once

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "models/common/grid/processor.h"

namespace fovea::qwen3_vl {

/// Sizes, sampling and scaling of images and videos, from the processor files.
/// @throws as common::read_grid_processor; Error(kCorruptData) for bounds of frames that are no
/// positive numbers. Source: docs/reference/qwen_glm.md, "Resized sizes" and "Sampled frames".
[[nodiscard]] common::GridProcessing read_processing(const checkpoint::HfConfig& files,
                                                     const common::GridGeometry& grid,
                                                     const MediaOptions& media);

}  // namespace fovea::qwen3_vl
