#pragma once

#include <cstdint>

#include "models/common/layers.h"
#include "models/common/weight_loader.h"

namespace fovea::common {

/// [head_dim / 4] f32: theta^(-2 j / (head_dim / 2)), the frequencies of rotary positions in two
/// dimensions; each serves rows and columns.
/// Source: docs/reference/qwen_glm.md, "Rotary positions".
[[nodiscard]] Tensor inverse_frequencies(WeightLoader& loader, std::int64_t head_dim, double theta);

/// What blocks work on, with the angles of the rows' positions, which are taken from ctx.arena in
/// the scope of the caller. Asynchronous on ctx.stream; safe to capture.
/// @param positions [rows, 4] i32: see ops::RopeAnglesArgs. @param inv_freq as of
/// inverse_frequencies().
[[nodiscard]] AttendedRows rotated_rows(ExecContext& ctx, const ops::Sequences& sequences,
                                        ConstTensorView positions, const Tensor& inv_freq);

}  // namespace fovea::common
