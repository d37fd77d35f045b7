#pragma once

#include <optional>
#include <vector>

#include "fovea/tower/ops/context.h"
#include "media/normalize.h"
#include "models/common/grid/inputs.h"
#include "models/common/layers.h"
#include "models/common/weight_loader.h"
#include "models/gemma4/config.h"
#include "models/gemma4/layers.h"
#include "models/registry.h"

namespace fovea::gemma4 {

/// A shift and a scale of pooled rows: (mean - bias) * scale.
struct Standardization {
  Tensor bias;   ///< [hidden_size] f32
  Tensor scale;  ///< [hidden_size] f32
};

/// The tower on a device. Move-only; shared read-only by all graphs.
struct Weights {
  Tensor inv_freq;  ///< [head_dim / 2] f32
  common::PatchEmbedding patch_embedder;
  Tensor x_positions;  ///< [position_embedding_size, hidden_size] f32
  Tensor y_positions;  ///< the same
  std::vector<Block> blocks;
  Tensor ones;  ///< [head_dim] f32
  std::optional<Standardization> standardization;
  common::RmsNorm pooled_norm;  ///< its weights are 1
  ops::PackedLinear embedding_projection;
};

/// The whole list of tensors, by name and shape. Rows of q and k are loaded in the order in which
/// halves of a head rotate. Source: docs/reference/gemma4.md, "Tensors" and "Rotary positions".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

/// The tower: bytes in, rows out. Asynchronous on ctx.stream; safe to capture.
/// @param in whose positions are y, x and twice position_embedding_size.
/// @param out [tokens, text_hidden_size]. Source: docs/reference/gemma4.md, "Forward".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::GridInputs& in, TensorView out);

/// Gemma 4.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::gemma4
