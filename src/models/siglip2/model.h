#pragma once

#include <optional>

#include "fovea/tower/ops/context.h"
#include "media/normalize.h"
#include "models/common/grid/inputs.h"
#include "models/common/layers.h"
#include "models/common/pooling_head.h"
#include "models/common/weight_loader.h"
#include "models/registry.h"
#include "models/siglip2/config.h"

namespace fovea::siglip2 {

/// The tower, and what its vector takes. Move-only; shared read-only by all graphs.
struct Weights {
  common::PatchEmbedding patch_embedding;
  Tensor position_embedding;  ///< [position_side^2, hidden_size] f32
  common::BlockSequence blocks;
  common::LayerNorm post_layernorm;
  std::optional<common::PoolingHead> head;  ///< of vectors
  std::optional<common::RmsNorm> unit;      ///< of vectors that are normalised
};

/// The whole list of tensors. Source: docs/reference/retrieval.md, "SigLIP 2".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   TowerOutput output, const media::NormalizeTable& normalize);

/// Bytes in, rows or vectors out. Asynchronous on ctx.stream; safe to capture.
/// @param sequence_of of vectors, [patches] i32: the image of every row, counted from 0.
/// @param out [patches, hidden_size]; a vector is put to all rows of its image.
/// Source: docs/reference/retrieval.md, "SigLIP 2".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::GridInputs& in, ConstTensorView sequence_of, TensorView out);

/// SigLIP 2 NaFlex.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::siglip2
