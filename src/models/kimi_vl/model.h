#pragma once

#include <optional>

#include "fovea/tower/ops/context.h"
#include "media/normalize.h"
#include "models/common/grid/inputs.h"
#include "models/common/layers.h"
#include "models/common/weight_loader.h"
#include "models/kimi_vl/chunks.h"
#include "models/kimi_vl/config.h"
#include "models/registry.h"

namespace fovea::kimi_vl {

/// The tower on a device. Move-only; shared read-only by all graphs.
struct Weights {
  Tensor inv_freq;  ///< [head_dim / 2] f32
  common::PatchEmbedding patch_embed;
  Tensor pos_emb;  ///< [init_pos_emb_height * init_pos_emb_width, hidden_size] f32
  Tensor times;    ///< [1 + init_pos_emb_time, hidden_size] f32: no time, then frame by frame
  common::BlockSequence blocks;
  common::LayerNorm final_layernorm;
  common::LayerNorm pre_norm;  ///< of rows, before they are joined
  common::Mlp projector;       ///< merge_area * hidden_size -> text_hidden_size
};

/// The whole list of tensors, by name and shape. Rows of q and k are loaded in the order in which
/// halves of a head rotate. Source: docs/reference/kimi_vl.md, "Tensors" and "Rotary positions".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

/// The tower: bytes in, rows out. Asynchronous on ctx.stream; safe to capture.
/// @param chunks of Kimi-K2.5; absent for Kimi-VL, whose patches all make tokens.
/// @param out [tokens, text_hidden_size]. Source: docs/reference/kimi_vl.md, "Forward".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::GridInputs& in, const std::optional<ChunkInputs>& chunks,
             TensorView out);

/// Kimi-VL.
[[nodiscard]] const ModelFamily& family() noexcept;
/// Kimi-K2.5.
[[nodiscard]] const ModelFamily& k25_family() noexcept;

}  // namespace fovea::kimi_vl
