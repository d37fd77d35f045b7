#pragma once

#include "fovea/tower/ops/context.h"
#include "models/common/layers.h"
#include "models/common/views/siglip.h"
#include "models/common/weight_loader.h"
#include "models/paligemma/config.h"
#include "models/registry.h"

namespace fovea::paligemma {

/// Tower and projector. Move-only; shared read-only by all graphs.
struct Weights {
  common::SiglipTower tower;
  common::LayerNorm post_norm;
  ops::PackedLinear projection;
};

/// The whole list of tensors. Source: docs/reference/siglip.md, "Tensors" and "PaliGemma".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

/// Bytes of square views in, projected rows of their patches out. Asynchronous on ctx.stream; safe
/// to capture. @param in of siglip_layout(config.tower). @param out [views * patches,
/// projection_dim]. Source: docs/reference/siglip.md, "PaliGemma".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::ViewInputs& in, TensorView out);

/// PaliGemma and PaliGemma 2.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::paligemma
