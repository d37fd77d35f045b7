#pragma once

#include "fovea/tower/ops/context.h"
#include "models/cohere_vision/config.h"
#include "models/common/layers.h"
#include "models/common/views/siglip.h"
#include "models/common/weight_loader.h"
#include "models/registry.h"

namespace fovea::cohere_vision {

/// Tower and projector. Move-only; shared read-only by all graphs.
struct Weights {
  common::SiglipTower tower;
  common::LayerNorm norm;      ///< over hidden_size in Cohere2, over joined_width in Aya Vision
  common::GatedMlp projector;  ///< joined_width -> text_hidden_size
};

/// The whole list of tensors.
/// Source: docs/reference/siglip.md, "Tensors" and "Cohere2-Vision and Aya Vision".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

/// Bytes of square views in, projected tokens out. Asynchronous on ctx.stream; safe to capture.
/// @param in of siglip_layout(config.tower). @param out [views * tokens, text_hidden_size].
/// Source: docs/reference/siglip.md, "Cohere2-Vision and Aya Vision".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::ViewInputs& in, TensorView out);

/// Command A Vision, and Aya Vision.
[[nodiscard]] const ModelFamily& cohere2_family() noexcept;
[[nodiscard]] const ModelFamily& aya_family() noexcept;

}  // namespace fovea::cohere_vision
