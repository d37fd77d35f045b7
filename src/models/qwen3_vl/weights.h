#pragma once

#include <vector>

#include "media/normalize.h"
#include "models/common/grid/layers.h"
#include "models/common/layers.h"
#include "models/common/weight_loader.h"
#include "models/qwen3_vl/config.h"

namespace fovea::qwen3_vl {

/// Joins merge_area rows into one and projects it.
struct Merger {
  common::LayerNorm norm;  ///< of rows before they are joined, or of joined rows
  common::Mlp mlp;         ///< merge_area * hidden -> out_hidden
};

/// The tower on a device. Move-only; shared read-only by all graphs.
struct Weights {
  Tensor inv_freq;  ///< [head_dim / 4] f32
  common::PatchEmbedding patch_embed;
  Tensor pos_embed;  ///< [position_side^2, hidden] f32
  common::BlockStack stack;
  Merger merger;                  ///< normalises rows
  std::vector<Merger> deepstack;  ///< normalise joined rows
};

/// The whole list of tensors, by name and shape. Source: docs/reference/qwen_glm.md, "Tensors".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

}  // namespace fovea::qwen3_vl
