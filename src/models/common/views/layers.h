#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/common/layers.h"
#include "models/common/views/inputs.h"

namespace fovea::common {

// The layers around the blocks of a tower over square views. As in layers.h, functions submit to
// ctx.stream, return at once and are safe to capture.

/// x = proj(normalise(pixels)), [patches, features].
void embed_patches(ExecContext& ctx, const ViewBatch& in, const PatchEmbedding& embedding,
                   TensorView x);

/// x = [class rows; patches] for every view, or [patches; class rows], as in.sequence says.
/// @param class_rows [class_rows, features] f32. @param patches [views * patches, features].
/// @param x [views * rows of a sequence, features].
void join_sequences(ExecContext& ctx, const ViewBatch& in, const Tensor& class_rows,
                    ConstTensorView patches, TensorView x);

/// x = [class rows; patches] + positions for every view, or [patches; class rows], as in.sequence
/// says. @param class_rows [class_rows, features] f32. @param positions [rows of a sequence,
/// features] f32. @param patches [views * patches, features]. @param x [views * rows of a sequence,
/// features].
void make_sequences(ExecContext& ctx, const ViewBatch& in, const Tensor& class_rows,
                    const Tensor& positions, ConstTensorView patches, TensorView x);

/// Both, one after the other: from pixels to the rows that blocks work on.
void embed_views(ExecContext& ctx, const ViewBatch& in, const PatchEmbedding& embedding,
                 const Tensor& class_rows, const Tensor& positions, TensorView x);

/// out = x without its class rows, which have done their work.
/// @param x [views * rows of a sequence, features]. @param out [views * patches, features or more].
void take_patches(ExecContext& ctx, const ViewBatch& in, ConstTensorView x, TensorView out);

/// out = the first row of every view, its class row where these come first.
/// @param x [views * rows of a sequence, features]. @param out [views, features].
void take_first_rows(ExecContext& ctx, const ViewBatch& in, ConstTensorView x, TensorView out);

/// Puts the vector of every view (vectors.h) to the first of its tokens.
/// @param vectors [views, features]. @param out [views * tokens, features].
void put_vectors(ExecContext& ctx, const ViewBatch& in, ConstTensorView vectors, TensorView out);

/// The rows of the views as blocks work on them, one sequence per view.
[[nodiscard]] AttendedRows attended_rows(const ViewBatch& in);

/// A table of positions whose patches go row by row of the image, in the order of for_each_patch.
/// Class rows, before or behind them, stay.
/// @param first_patch as in ViewSequence. @param table [rows of a sequence, features].
[[nodiscard]] std::vector<float> in_patch_order(const SquareView& view, std::int64_t first_patch,
                                                std::int64_t features,
                                                std::span<const float> table);

}  // namespace fovea::common
