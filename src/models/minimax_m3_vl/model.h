#pragma once

#include "fovea/tower/ops/context.h"
#include "media/normalize.h"
#include "models/common/grid/inputs.h"
#include "models/common/layers.h"
#include "models/common/weight_loader.h"
#include "models/minimax_m3_vl/config.h"
#include "models/registry.h"

namespace fovea::minimax_m3_vl {

/// The tower on a device. Move-only; shared read-only by all graphs.
struct Weights {
  Tensor inv_freq;  ///< [3, head_dim / 2] f32: what y, x and time turn
  common::PatchEmbedding patch_embedding;
  common::LayerNorm pre_layrnorm;
  common::BlockSequence blocks;
  common::Mlp projector;        ///< of a patch: hidden_size -> text_hidden_size
  common::Mlp patch_merge_mlp;  ///< of the patches of a row side by side
};

/// The whole list of tensors, by name and shape. Rows of q and k are loaded in the order in which
/// halves of a head rotate. Source: docs/reference/minimax_m3_vl.md, "Tensors" and "Rotary
/// positions".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

/// The tower: bytes in, rows out. Asynchronous on ctx.stream; safe to capture.
/// @param in whose positions are y, x and the temporal patch within its segment.
/// @param out [tokens, text_hidden_size]. Source: docs/reference/minimax_m3_vl.md, "Forward".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::GridInputs& in, TensorView out);

/// MiniMax-M3.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::minimax_m3_vl
