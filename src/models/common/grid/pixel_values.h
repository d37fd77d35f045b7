#pragma once

#include <cstdint>
#include <span>

#include "fovea/tower/models/item_processor.h"
#include "models/common/grid/geometry.h"
#include "models/common/grid/processor.h"

namespace fovea::common {

/// Turns the processor's pixel_values of one item back into bytes: for every patch a tile of
/// interleaved RGB, patch_size x patch_size pixels per kept frame.
/// @param plan of GridProcessor::plan_grid.
/// @param values [patches, patch_dim], a row is [channel, frame, y, x]; f32, f16 or bf16.
/// @throws Error(kInvalidArgument) for another shape, for a value that is no rescaled and
/// normalised byte, and for an image whose frames differ; the first such element is named.
/// Source: docs/reference/qwen_glm.md, "Patch rows".
void fill_pixel_values(const GridGeometry& geometry, const PixelScaling& scaling,
                       const ItemPlan& plan, const ConstTensorView& values,
                       std::span<std::uint8_t> out);

}  // namespace fovea::common
