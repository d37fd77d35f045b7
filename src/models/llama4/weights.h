#pragma once

#include <vector>

#include "media/normalize.h"
#include "models/common/layers.h"
#include "models/common/weight_loader.h"
#include "models/llama4/config.h"

namespace fovea::llama4 {

/// The tower on a device. Move-only; shared read-only by all graphs.
struct Weights {
  Tensor inv_freq;  ///< [head_dim / 4] f32
  common::PatchEmbedding patch_embedding;
  Tensor class_embedding;       ///< [1, hidden_size] f32
  Tensor positional_embedding;  ///< [patches + 1, hidden_size] f32, in the order of rows
  common::LayerNorm layernorm_pre;
  std::vector<common::Block> layers;
  common::LayerNorm layernorm_post;
  ops::PackedLinear adapter_fc1;  ///< joined_width -> vision_output_dim
  ops::PackedLinear adapter_fc2;  ///< vision_output_dim -> vision_output_dim
  ops::PackedLinear projector;    ///< vision_output_dim -> text_hidden_size
};

/// The whole list of tensors, by name and shape. Positions are loaded in the order of the tower's
/// rows, rows of q and k in the order in which halves of a head rotate.
/// Source: docs/reference/llama4.md, "Tensors" and "Rotary positions".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

}  // namespace fovea::llama4
