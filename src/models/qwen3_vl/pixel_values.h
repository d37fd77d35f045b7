#pragma once

#include <cstdint>
#include <span>

#include "models/encoder_graph_model.h"
#include "models/qwen3_vl/config.h"

namespace fovea::qwen3_vl {

/// Turns the processor's pixel_values of one item back into bytes: for every patch a tile of
/// interleaved RGB, patch_size x patch_size pixels per kept frame.
/// @param plan of plan_grid.
/// @param values [patches, patch_dim], a row is [channel, frame, y, x]; f32, f16 or bf16.
/// @throws Error(kInvalidArgument) for another shape, for a value that is no rescaled and
/// normalised byte, and for a picture whose frames differ; the first such element is named.
/// Source: Qwen and GLM specification, section 3.5.
void fill_pixel_values(const Config& config, const PreprocessConfig& preprocess,
                       const ItemPlan& plan, const ConstTensorView& values,
                       std::span<std::uint8_t> out);

}  // namespace fovea::qwen3_vl
