#pragma once

#include <vector>

#include "media/normalize.h"
#include "models/blocks/grid/layers.h"
#include "models/blocks/layers.h"
#include "models/blocks/weight_loader.h"
#include "models/kimi_vl/config.h"

namespace fovea::kimi_vl {

/// The tower on a device. Move-only; shared read-only by all graphs.
struct Weights {
  Tensor inv_freq;  ///< [head_dim / 4] f32
  blocks::PatchEmbedding patch_embed;
  Tensor pos_emb;  ///< [init_pos_emb_height * init_pos_emb_width, hidden_size] f32
  blocks::BlockStack stack;
  blocks::LayerNorm final_layernorm;
  blocks::LayerNorm pre_norm;  ///< of rows, before they are joined
  blocks::Mlp projector;       ///< merge_area * hidden_size -> text_hidden_size
};

/// The whole list of tensors, by name and shape. Rows of q and k are loaded in the order in which
/// halves of a head rotate. Source: docs/reference/kimi_vl.md, "Tensors" and "Rotary positions".
[[nodiscard]] Weights load_weights(blocks::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

}  // namespace fovea::kimi_vl
