#pragma once

#include <variant>
#include <vector>

#include "media/normalize.h"
#include "models/blocks/layers.h"
#include "models/blocks/weight_loader.h"
#include "models/internvl/config.h"

namespace fovea::internvl {

/// Attention whose q and k are normalised over all heads together.
struct QkNormAttention {
  blocks::Attention attn;
  blocks::RmsNorm q_norm;
  blocks::RmsNorm k_norm;
};

using Norm = std::variant<blocks::LayerNorm, blocks::RmsNorm>;

/// A pre-norm block; its layer scales are in the weights of proj and fc2.
struct Layer {
  Norm norm1;
  Norm norm2;
  std::variant<blocks::Attention, QkNormAttention> attn;
  blocks::Mlp mlp;
};

/// Tower and projector. Move-only; shared read-only by all graphs.
struct Weights {
  Tensor normalize;                   ///< [3, 256] f32: value of every byte per channel
  ops::PackedLinear patch_embedding;  ///< 3 * patch_size^2 -> hidden_size
  Tensor class_embedding;             ///< [1, hidden_size] f32
  Tensor position_embedding;          ///< [seq_rows, hidden_size] f32, in the order of the rows
  std::vector<Layer> layers;
  blocks::LayerNorm projector_norm;  ///< over joined_width
  blocks::Mlp projector;
};

/// The whole list of tensors.
/// Source: docs/reference/internvl.md, "Tensors".
[[nodiscard]] Weights load_weights(blocks::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

}  // namespace fovea::internvl
