#pragma once

#include <cstdint>
#include <span>

#include "fovea/tower/models/encoder_graph_model.h"
#include "models/common/layers.h"
#include "models/common/weight_loader.h"

namespace fovea::common {

// Vectors of whole images, which encoders for retrieval make. The tokens of a path measure its work
// and stay those of its rows; the first token of an image holds its vector, and the others nothing.

/// EncoderGraphModel::assemble of vectors: the first of the rows of every part is its item's only
/// one.
/// @throws Error(kInternal) if a destination has another number of rows.
void assemble_vectors(ExecContext& ctx, TensorView rows, std::span<const ItemPart> parts,
                      std::span<const TensorView> out);

/// The norm that divides a vector by its L2 norm: an RMS norm of weights 1 / sqrt(features), with
/// an epsilon that keeps the vector 0 where it is 0.
[[nodiscard]] RmsNorm unit_norm(WeightLoader& loader, std::int64_t features);

}  // namespace fovea::common
