#pragma once

#include <cstdint>

#include "models/blocks/weight_loader.h"

namespace fovea::blocks {

/// [head_dim / 4] f32: theta^(-2 j / (head_dim / 2)), the frequencies of rotary positions in two
/// dimensions; each serves rows and columns.
/// Source: docs/reference/qwen_glm.md, "Rotary positions".
[[nodiscard]] Tensor inverse_frequencies(WeightLoader& loader, std::int64_t head_dim, double theta);

}  // namespace fovea::blocks
