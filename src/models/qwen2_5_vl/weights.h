#pragma once

#include <vector>

#include "media/normalize.h"
#include "models/common/grid/layers.h"
#include "models/common/layers.h"
#include "models/common/weight_loader.h"
#include "models/qwen2_5_vl/config.h"

namespace fovea::qwen2_5_vl {

struct Block {
  common::RmsNorm norm1;
  common::RmsNorm norm2;
  common::Attention attn;
  common::GatedMlp mlp;
};

/// The tower on a device. Move-only; shared read-only by all graphs.
struct Weights {
  Tensor inv_freq;                     ///< [head_dim / 4] f32
  common::PatchEmbedding patch_embed;  ///< without bias
  std::vector<Block> blocks;
  common::RmsNorm ln_q;  ///< of the merger: of rows before they are joined
  common::Mlp merger;    ///< merge_area * hidden_size -> out_hidden_size
};

/// The whole list of tensors, by name and shape. Source: docs/reference/qwen2_5_vl.md, "Tensors".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

}  // namespace fovea::qwen2_5_vl
