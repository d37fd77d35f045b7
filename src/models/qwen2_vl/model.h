#pragma once

#include <vector>

#include "fovea/tower/ops/context.h"
#include "media/normalize.h"
#include "models/common/grid/inputs.h"
#include "models/common/layers.h"
#include "models/common/weight_loader.h"
#include "models/qwen2_vl/config.h"
#include "models/registry.h"

namespace fovea::qwen2_vl {

/// The tower on a device. Move-only; shared read-only by all graphs.
struct Weights {
  Tensor inv_freq;                     ///< [head_dim / 2] f32
  common::PatchEmbedding patch_embed;  ///< without bias
  std::vector<common::Block> blocks;
  common::LayerNorm ln_q;  ///< of the merger: of rows before they are joined
  common::Mlp merger;      ///< merge_area * embed_dim -> hidden_size
};

/// The whole list of tensors, by name and shape. Source: docs/reference/qwen2_vl.md, "Tensors".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

/// The tower: bytes in, rows out. Asynchronous on ctx.stream; safe to capture.
/// @param out [tokens, hidden_size]. Source: docs/reference/qwen2_vl.md, "Forward".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::GridInputs& in, TensorView out);

/// Qwen2-VL.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::qwen2_vl
