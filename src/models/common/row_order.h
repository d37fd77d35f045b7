#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fovea::common {

/// An order of the rows of an attention head, [head_dim]: row i of the head that runs is row
/// order[i] of the checkpoint. Scores do not change when q and k are reordered alike.
using RowOrder = std::vector<std::int64_t>;

/// The order in which the halves of a head rotate as adjacent pairs do in the reference.
/// ops::projected_attention turns rows j and j + head_dim / 2 by angle j; a reference of pairs
/// turns rows 2 p and 2 p + 1.
/// @param pairs [head_dim / 2], a permutation: pairs[j] is the pair p that angle j turns.
[[nodiscard]] RowOrder halves_order(std::span<const std::int64_t> pairs);

}  // namespace fovea::common
