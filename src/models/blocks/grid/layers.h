#pragma once

#include "models/blocks/grid/geometry.h"
#include "models/blocks/grid/inputs.h"
#include "models/blocks/layers.h"
#include "models/blocks/weight_loader.h"

namespace fovea::blocks {

// What stands before the blocks of a tower over grids. As in layers.h, functions submit to
// ctx.stream, return at once and are safe to capture.

/// [head_dim / 4] f32: theta^(-2 j / (head_dim / 2)), the frequencies of rotary positions in two
/// dimensions; each serves rows and columns.
/// Source: docs/reference/qwen_glm.md, "Rotary positions".
[[nodiscard]] Tensor inverse_frequencies(WeightLoader& loader, std::int64_t head_dim, double theta);

/// Pixels to rows: a convolution whose stride is its size.
struct PatchEmbedding {
  Tensor normalize;        ///< [3, 256] f32: value of every byte per channel
  ops::PackedLinear proj;  ///< patch_dim -> features
};

/// x = proj(normalise(pixels)), [patches, features].
void embed_patches(ExecContext& ctx, const GridGeometry& geometry, const PatchEmbedding& embedding,
                   const GridInputs& in, TensorView x);

/// What blocks over `num_rows` rows work on, with the angles of their positions, which are taken
/// from ctx.arena in the scope of the caller.
/// @param inv_freq as of inverse_frequencies().
[[nodiscard]] AttendedRows rotated_rows(ExecContext& ctx, const GridInputs& in,
                                        const Tensor& inv_freq, std::int64_t num_rows);

}  // namespace fovea::blocks
