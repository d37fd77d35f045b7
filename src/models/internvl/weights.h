#pragma once

#include <array>
#include <optional>
#include <variant>
#include <vector>

#include "media/normalize.h"
#include "models/blocks/layers.h"
#include "models/blocks/weight_loader.h"
#include "models/internvl/config.h"

namespace fovea::internvl {

struct Norm {
  std::variant<blocks::LayerNorm, blocks::RmsNorm> kind;
};

struct Attention {
  blocks::Attention plain;
  /// Of q and of k, over all heads together, where the tower has them.
  std::optional<std::array<blocks::RmsNorm, 2>> qk_norms;
};

/// A pre-norm block; its layer scales are in the weights of proj and fc2.
struct Layer {
  Norm norm1;
  Norm norm2;
  Attention attn;
  blocks::Mlp mlp;
};

/// Tower and projector. Move-only; shared read-only by all graphs.
struct Weights {
  blocks::PatchEmbedding patch_embedding;
  Tensor class_embedding;     ///< [1, hidden_size] f32
  Tensor position_embedding;  ///< [1 + patches, hidden_size] f32, in the order of the rows
  std::vector<Layer> layers;
  blocks::LayerNorm projector_norm;  ///< over joined_width
  blocks::Mlp projector;
};

/// The whole list of tensors.
/// Source: docs/reference/internvl.md, "Tensors".
[[nodiscard]] Weights load_weights(blocks::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

}  // namespace fovea::internvl
