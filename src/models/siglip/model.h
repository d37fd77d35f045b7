#pragma once

#include <optional>

#include "fovea/tower/ops/context.h"
#include "models/common/layers.h"
#include "models/common/pooling_head.h"
#include "models/common/views/siglip.h"
#include "models/common/weight_loader.h"
#include "models/registry.h"

namespace fovea::siglip {

/// The tower, and what its vector takes. Move-only; shared read-only by all graphs.
struct Weights {
  common::SiglipTower tower;
  common::LayerNorm post_layernorm;
  std::optional<common::PoolingHead> head;  ///< of vectors
  std::optional<common::RmsNorm> unit;      ///< of vectors that are normalised
};

/// The whole list of tensors. Source: docs/reference/retrieval.md, "SigLIP".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const common::SiglipConfig& config,
                                   TowerOutput output, const media::NormalizeTable& normalize);

/// Bytes of square views in, rows or vectors out. Asynchronous on ctx.stream; safe to capture.
/// @param in of siglip_layout(config). @param out [views * patches, hidden_size]; vectors are put
/// to the first row of each view. Source: docs/reference/retrieval.md, "SigLIP".
void forward(ExecContext& ctx, const common::SiglipConfig& config, const Weights& weights,
             const common::ViewInputs& in, TensorView out);

/// SigLIP, and SigLIP 2 at one resolution.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::siglip
