#pragma once

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "models/blocks/grid_processor.h"

namespace fovea::blocks {

/// Reads what the processor files of all families over grids say, in all spellings, into limits,
/// scaling, engine, filter and assumptions of `processing`. What no file says stays as it is. The
/// file of images serves videos too where they have none.
/// @param media its limits and resize backend come before those of the files.
/// @param processing with the geometry of the tower, which the files must not contradict.
/// @throws Error(kCorruptData) for wrong types, factors that are not above 0, and other sizes than
/// those of the geometry; Error(kUnsupported) for steps that are switched off;
/// Error(kInvalidArgument) for impossible limits in `media`.
/// Source: docs/reference/qwen_glm.md, "Processor files".
void read_grid_processor(const checkpoint::HfConfig& files, const MediaOptions& media,
                         GridProcessing& processing);

}  // namespace fovea::blocks
