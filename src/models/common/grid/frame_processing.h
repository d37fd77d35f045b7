#pragma once

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "models/common/grid/processor.h"

namespace fovea::common {

/// Processing whose limits count the pixels of one image, or of one frame of a video: sizes,
/// sampling and scaling from the processor files. Frames are sampled in whole temporal patches.
/// @throws as read_grid_processor and read_video_bounds.
/// Source: docs/reference/qwen2_vl.md, "Processing" and "Sampled frames".
[[nodiscard]] GridProcessing read_frame_processing(const checkpoint::HfConfig& files,
                                                   const GridGeometry& grid,
                                                   const MediaOptions& media);

}  // namespace fovea::common
