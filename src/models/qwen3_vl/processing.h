#pragma once

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "models/blocks/grid/processor.h"

namespace fovea::qwen3_vl {

/// Sizes, sampling and scaling of images and videos, from the processor files.
/// @throws as blocks::read_grid_processor; Error(kCorruptData) for bounds of frames that are no
/// positive numbers. Source: docs/reference/qwen_glm.md, "Resized sizes" and "Sampled frames".
[[nodiscard]] blocks::GridProcessing read_processing(const checkpoint::HfConfig& files,
                                                     const blocks::GridGeometry& grid,
                                                     const MediaOptions& media);

}  // namespace fovea::qwen3_vl
