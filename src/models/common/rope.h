#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/common/layers.h"
#include "models/common/weight_loader.h"

namespace fovea::common {

/// [head_dim / 2] f32: theta^(-2 j / (head_dim / 2)) for j < head_dim / 4, the frequencies of
/// rotary positions in two dimensions, for rows, and the same again for columns. Source:
/// docs/reference/qwen_glm.md, "Rotary positions".
[[nodiscard]] Tensor inverse_frequencies(WeightLoader& loader, std::int64_t head_dim, double theta);

/// The rows that blocks work on, with the angles of the rows' positions, which are taken from
/// ctx.arena in the scope of the caller. Asynchronous on ctx.stream; safe to capture.
/// @param positions [rows, 4] i32. @param inv_freq f32, of one axis or two: see
/// ops::RopeAnglesArgs.
[[nodiscard]] AttendedRows rotated_rows(ExecContext& ctx, const ops::Sequences& sequences,
                                        ConstTensorView positions, const Tensor& inv_freq);

/// An order of the rows of an attention head, [head_dim]: row i of the head that runs is row
/// order[i] of the checkpoint. Scores do not change when q and k are reordered alike.
using RowOrder = std::vector<std::int64_t>;

/// The order in which the halves of a head rotate as adjacent pairs do in the reference.
/// ops::projected_attention turns rows j and j + head_dim / 2 by angle j; a reference of pairs
/// turns rows 2 p and 2 p + 1.
/// @param pairs [head_dim / 2], a permutation: pairs[j] is the pair p that angle j turns.
[[nodiscard]] RowOrder halves_order(std::span<const std::int64_t> pairs);

}  // namespace fovea::common
