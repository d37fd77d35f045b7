#pragma once

#include <vector>

#include "models/blocks/weight_loader.h"
#include "models/qwen3_vl/config.h"

namespace fovea::qwen3_vl {

struct BlockWeights {
  blocks::NormWeights norm1;  ///< [hidden]
  blocks::NormWeights norm2;  ///< [hidden]
  ops::PackedLinear qkv;      ///< hidden -> 3 hidden: q | k | v
  ops::PackedLinear proj;     ///< hidden -> hidden
  ops::PackedLinear fc1;      ///< hidden -> intermediate
  ops::PackedLinear fc2;      ///< intermediate -> hidden
};

struct MergerWeights {
  blocks::NormWeights
      norm;               ///< [hidden] before, or [merge area * hidden] after the rows are joined
  ops::PackedLinear fc1;  ///< merge area * hidden -> merge area * hidden
  ops::PackedLinear fc2;  ///< merge area * hidden -> out_hidden
};

/// The tower's weights on a device. Move-only; shared read-only by all graphs.
struct Weights {
  ops::PackedLinear patch_embed;  ///< patch_dim -> hidden
  Tensor pos_embed;               ///< [num_position_embeddings, hidden] f32
  std::vector<BlockWeights> blocks;
  MergerWeights merger;
  std::vector<MergerWeights> deepstack_mergers;
};

/// The whole list of tensors, by name and shape. Source: Qwen and GLM specification, section 2.
[[nodiscard]] Weights load_weights(blocks::WeightLoader& loader, const Config& config);

/// The text in front of the tower's tensor names, found by the patch embedding.
/// @throws Error(kNotFound) if the checkpoint has no vision tower under a known name.
[[nodiscard]] std::string weight_prefix(const checkpoint::WeightSource& source);

}  // namespace fovea::qwen3_vl
