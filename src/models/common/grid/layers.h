#pragma once

#include "models/common/grid/geometry.h"
#include "models/common/grid/inputs.h"
#include "models/common/rope.h"

namespace fovea::common {

// What stands before the blocks of a tower over grids. As in layers.h, functions submit to
// ctx.stream, return at once and are safe to capture.

/// x = proj(normalise(pixels)), [patches, features].
void embed_patches(ExecContext& ctx, const GridGeometry& geometry, const PatchEmbedding& embedding,
                   const GridInputs& in, TensorView x);

/// What blocks over `num_rows` rows work on, with the angles of their positions, which are taken
/// from ctx.arena in the scope of the caller.
/// @param inv_freq as of inverse_frequencies().
[[nodiscard]] AttendedRows rotated_rows(ExecContext& ctx, const GridInputs& in,
                                        const Tensor& inv_freq, std::int64_t num_rows);

}  // namespace fovea::common
