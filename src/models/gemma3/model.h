#pragma once

#include "fovea/tower/ops/context.h"
#include "models/common/layers.h"
#include "models/common/views/siglip.h"
#include "models/common/weight_loader.h"
#include "models/gemma3/config.h"
#include "models/registry.h"

namespace fovea::gemma3 {

/// Tower and projector. Move-only; shared read-only by all graphs.
struct Weights {
  common::SiglipTower tower;
  common::LayerNorm post_norm;
  common::RmsNorm pooled_norm;  ///< its weight is 1 + that of the checkpoint
  ops::PackedLinear projection;
};

/// The whole list of tensors. Source: docs/reference/siglip.md, "Tensors" and "Gemma 3".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

/// Bytes of square views in, rows of their pooled patches out. Asynchronous on ctx.stream; safe to
/// capture. @param in of siglip_layout(config.tower). @param out [views * tokens,
/// text_hidden_size]. Source: docs/reference/siglip.md, "Gemma 3".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::ViewInputs& in, TensorView out);

/// Gemma 3 and MedGemma.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::gemma3
