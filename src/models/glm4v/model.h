#pragma once

#include <vector>

#include "fovea/tower/ops/context.h"
#include "media/normalize.h"
#include "models/common/grid/inputs.h"
#include "models/common/layers.h"
#include "models/common/weight_loader.h"
#include "models/glm4v/config.h"
#include "models/registry.h"

namespace fovea::glm4v {

/// mlp(gelu(norm(proj(x)))), rows to rows of the same width.
struct Merger {
  ops::PackedLinear proj;
  common::LayerNorm norm;
  common::GatedMlp mlp;
};

/// The tower on a device. Move-only; shared read-only by all graphs.
struct Weights {
  Tensor inv_freq;                      ///< [head_dim / 2] f32
  common::PatchEmbedding patch_embed;   ///< with bias
  common::RmsNorm post_conv_layernorm;  ///< with a table
  Tensor position_embedding;            ///< [position_side^2, hidden_size] f32, or none
  std::vector<common::GatedBlock> blocks;
  common::RmsNorm post_layernorm;
  ops::PackedLinear downsample;  ///< patches of a token side by side -> out_hidden_size
  Merger merger;
};

/// The whole list of tensors, by name and shape. Source: docs/reference/glm4v.md, "Tensors".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

/// The tower: bytes in, rows out. Asynchronous on ctx.stream; safe to capture.
/// @param out [tokens, out_hidden_size]. Source: docs/reference/glm4v.md, "Forward".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::GridInputs& in, TensorView out);

/// GLM-4.1V, GLM-4.5V, GLM-4.6V and GLM-OCR.
[[nodiscard]] const ModelFamily& family() noexcept;
/// GLM-5, whose images lie on canvases of whole tokens.
[[nodiscard]] const ModelFamily& canvas_family() noexcept;

}  // namespace fovea::glm4v
