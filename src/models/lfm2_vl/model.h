#pragma once

#include <optional>

#include "fovea/tower/ops/context.h"
#include "media/normalize.h"
#include "models/common/grid/inputs.h"
#include "models/common/layers.h"
#include "models/common/weight_loader.h"
#include "models/lfm2_vl/config.h"
#include "models/registry.h"

namespace fovea::lfm2_vl {

/// The tower on a device. Move-only; shared read-only by all graphs.
struct Weights {
  common::PatchEmbedding patch_embedding;
  Tensor position_embedding;  ///< [position_side^2, hidden_size] f32
  common::BlockSequence blocks;
  common::LayerNorm post_layernorm;
  std::optional<common::LayerNorm> layer_norm;  ///< of joined rows
  common::Mlp projector;                        ///< merge_area * hidden_size -> text_hidden_size
};

/// The whole list of tensors, by name and shape. Source: docs/reference/lfm2_vl.md, "Tensors".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

/// The tower: bytes in, rows out. Asynchronous on ctx.stream; safe to capture.
/// @param out [tokens, text_hidden_size]. Source: docs/reference/lfm2_vl.md, "Forward".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::GridInputs& in, TensorView out);

/// LFM2-VL.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::lfm2_vl
