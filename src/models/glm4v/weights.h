#pragma once

#include <vector>

#include "media/normalize.h"
#include "models/blocks/grid/layers.h"
#include "models/blocks/layers.h"
#include "models/blocks/weight_loader.h"
#include "models/glm4v/config.h"

namespace fovea::glm4v {

/// A pre-norm block, as blocks::add_block takes it.
struct Block {
  blocks::RmsNorm norm1;
  blocks::RmsNorm norm2;
  blocks::Attention attn;
  blocks::GatedMlp mlp;
};

/// mlp(gelu(norm(proj(x)))), rows to rows of the same width.
struct Merger {
  ops::PackedLinear proj;
  blocks::LayerNorm norm;
  blocks::GatedMlp mlp;
};

/// The tower on a device. Move-only; shared read-only by all graphs.
struct Weights {
  Tensor inv_freq;                     ///< [head_dim / 4] f32
  blocks::PatchEmbedding patch_embed;  ///< with bias
  blocks::RmsNorm post_conv_layernorm;
  Tensor position_embedding;  ///< [position_side^2, hidden_size] f32
  std::vector<Block> blocks;
  blocks::RmsNorm post_layernorm;
  ops::PackedLinear downsample;  ///< patches of a token side by side -> out_hidden_size
  Merger merger;
};

/// The whole list of tensors, by name and shape. Source: docs/reference/glm4v.md, "Tensors".
[[nodiscard]] Weights load_weights(blocks::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

}  // namespace fovea::glm4v
