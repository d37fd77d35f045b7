#pragma once

#include <vector>

#include "fovea/tower/ops/context.h"
#include "media/normalize.h"
#include "models/common/grid/inputs.h"
#include "models/common/layers.h"
#include "models/common/weight_loader.h"
#include "models/qwen3_vl/config.h"
#include "models/registry.h"

namespace fovea::qwen3_vl {

/// Joins merge_area rows into one and projects it.
struct Merger {
  common::LayerNorm norm;  ///< of rows before they are joined, or of joined rows
  common::Mlp mlp;         ///< merge_area * hidden -> out_hidden
};

/// The tower on a device. Move-only; shared read-only by all graphs.
struct Weights {
  Tensor inv_freq;  ///< [head_dim / 2] f32
  common::PatchEmbedding patch_embed;
  Tensor pos_embed;  ///< [position_side^2, hidden] f32
  common::BlockSequence blocks;
  Merger merger;                  ///< normalises rows
  std::vector<Merger> deepstack;  ///< normalise joined rows
};

/// The whole list of tensors, by name and shape. Source: docs/reference/qwen_glm.md, "Tensors".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

/// The tower: bytes in, rows out. Asynchronous on ctx.stream and ctx.side; safe to capture.
/// @param out [tokens, out_width]: main embedding, then the deepstack levels, side by side.
/// Source: docs/reference/qwen_glm.md, "Forward of Qwen3-VL".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::GridInputs& in, TensorView out);

/// Qwen3-VL, and all that have its tower: docs/models/qwen3_vl.md lists them.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::qwen3_vl
