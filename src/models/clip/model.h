#pragma once

#include <optional>

#include "fovea/tower/ops/context.h"
#include "models/clip/config.h"
#include "models/common/layers.h"
#include "models/common/views/clip.h"
#include "models/common/weight_loader.h"
#include "models/registry.h"

namespace fovea::clip {

/// The tower, and what its vector takes. Move-only; shared read-only by all graphs.
struct Weights {
  common::ClipTower tower;
  std::optional<common::LayerNorm> post_layernorm;     ///< of vectors
  std::optional<ops::PackedLinear> visual_projection;  ///< of vectors, where the model has it
  std::optional<common::RmsNorm> unit;                 ///< of vectors that are normalised
};

/// The whole list of tensors. Source: docs/reference/retrieval.md, "CLIP".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   TowerOutput output, const media::NormalizeTable& normalize);

/// Bytes of square views in, rows or vectors out. Asynchronous on ctx.stream; safe to capture.
/// @param out [views * (1 + patches), hidden_size] rows, or as wide as vectors, which are put to
/// the first row of each view. Source: docs/reference/retrieval.md, "CLIP".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::ViewInputs& in, TensorView out);

/// CLIP with the projection of its vectors.
[[nodiscard]] const ModelFamily& family() noexcept;
/// Its vision model without it.
[[nodiscard]] const ModelFamily& vision_family() noexcept;

}  // namespace fovea::clip
