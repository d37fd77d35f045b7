#pragma once

#include "fovea/tower/ops/context.h"
#include "models/common/layers.h"
#include "models/common/views/siglip.h"
#include "models/common/weight_loader.h"
#include "models/deepseek_vl/config.h"
#include "models/registry.h"

namespace fovea::deepseek_vl {

/// Tower and projector. Move-only; shared read-only by all graphs.
struct Weights {
  common::SiglipTower tower;
  common::LayerNorm post_norm;
  common::Mlp aligner;
};

/// The whole list of tensors. Source: docs/reference/siglip.md, "Tensors" and "DeepSeek-VL".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

/// Bytes of square views in, aligned rows of their patches out. Asynchronous on ctx.stream; safe to
/// capture. @param in of siglip_layout(config.tower). @param out [views * patches,
/// text_hidden_size]. Source: docs/reference/siglip.md, "DeepSeek-VL".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::ViewInputs& in, TensorView out);

/// DeepSeek-VL 1.3B.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::deepseek_vl
