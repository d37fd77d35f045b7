#pragma once

#include <vector>

#include "fovea/tower/ops/context.h"
#include "media/normalize.h"
#include "models/common/grid/inputs.h"
#include "models/common/layers.h"
#include "models/common/weight_loader.h"
#include "models/qwen2_5_vl/config.h"
#include "models/qwen2_5_vl/windows.h"
#include "models/registry.h"

namespace fovea::qwen2_5_vl {

/// The tower on a device. Move-only; shared read-only by all graphs.
struct Weights {
  Tensor inv_freq;                     ///< [head_dim / 2] f32
  common::PatchEmbedding patch_embed;  ///< without bias
  std::vector<common::GatedBlock> blocks;
  common::RmsNorm ln_q;  ///< of the merger: of rows before they are joined
  common::Mlp merger;    ///< merge_area * hidden_size -> out_hidden_size
};

/// The whole list of tensors, by name and shape. Source: docs/reference/qwen2_5_vl.md, "Tensors".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

/// The tower: bytes in, rows out. Asynchronous on ctx.stream; safe to capture.
/// @param in with rows in the order of windows.
/// @param out [tokens, out_hidden_size], in the order of the items.
/// Source: docs/reference/qwen2_5_vl.md, "Forward".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::GridInputs& in, const WindowInputs& windows, TensorView out);

/// Qwen2.5-VL, and all that have its tower: docs/models/qwen2_5_vl.md lists them.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::qwen2_5_vl
