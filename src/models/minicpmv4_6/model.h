#pragma once

#include "fovea/tower/ops/context.h"
#include "media/normalize.h"
#include "models/common/grid/inputs.h"
#include "models/common/layers.h"
#include "models/common/weight_loader.h"
#include "models/minicpmv4_6/config.h"
#include "models/minicpmv4_6/inputs.h"
#include "models/registry.h"

namespace fovea::minicpmv4_6 {

/// Makes one row of a window: its patches attend to each other, then an MLP joins them.
struct WindowMerger {
  common::LayerNorm layer_norm1;
  common::Attention self_attn;
  common::LayerNorm pre_norm;  ///< of the patches of a window side by side
  common::Mlp mlp;             ///< kArea * hidden_size -> hidden_size
};

/// The tower on a device. Move-only; shared read-only by all graphs.
struct Weights {
  common::PatchEmbedding patch_embedding;
  Tensor position_embedding;     ///< [table side^2, hidden_size] f32
  common::BlockSequence blocks;  ///< up to insert_layer_id
  WindowMerger vit_merger;
  common::BlockSequence later_blocks;  ///< on a quarter of the rows
  common::LayerNorm post_layernorm;
  common::LayerNorm pre_norm;  ///< of rows side by side
  common::Mlp merger;          ///< kArea * hidden_size -> text_hidden_size
};

/// The whole list of tensors, by name and shape. Source: docs/reference/minicpmv4_6.md, "Tensors".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

/// The tower: bytes in, rows out. Asynchronous on ctx.stream; safe to capture.
/// @param in whose rows and positions are those of WindowInputs::fill.
/// @param out [tokens, text_hidden_size]. Source: docs/reference/minicpmv4_6.md, "Forward".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::GridInputs& in, const WindowInputs& windows, TensorView out);

/// MiniCPM-V 4.6.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::minicpmv4_6
