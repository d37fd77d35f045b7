#pragma once

#include "fovea/tower/ops/context.h"
#include "media/normalize.h"
#include "models/common/layers.h"
#include "models/common/views/siglip.h"
#include "models/common/weight_loader.h"
#include "models/idefics3/config.h"
#include "models/registry.h"

namespace fovea::idefics3 {

/// Tower and connector. Move-only; shared read-only by all graphs.
struct Weights {
  common::SiglipTower tower;
  common::LayerNorm post_layernorm;
  ops::PackedLinear modality_projection;  ///< joined_width -> text_hidden_size, no bias
};

/// The entry of a table of `table_side` positions that patch i of `patches` on an axis has.
/// Source: docs/reference/idefics3.md, "Positions".
[[nodiscard]] inline std::int64_t position_of(std::int64_t i, std::int64_t patches,
                                              std::int64_t table_side) {
  return i * table_side / patches;
}

/// The whole list of tensors, by name and shape. Source: docs/reference/idefics3.md, "Tensors".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

/// Bytes of square views in, projected tokens out. Asynchronous on ctx.stream; safe to capture.
/// @param in of siglip_layout(config.tower). @param out [views * tokens, text_hidden_size].
/// Source: docs/reference/idefics3.md, "Forward".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::ViewInputs& in, TensorView out);

/// Idefics3 and the first SmolVLM.
[[nodiscard]] const ModelFamily& family() noexcept;
/// SmolVLM 2.
[[nodiscard]] const ModelFamily& smolvlm_family() noexcept;

}  // namespace fovea::idefics3
