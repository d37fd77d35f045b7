#pragma once

#include <array>
#include <optional>
#include <variant>
#include <vector>

#include "fovea/tower/ops/context.h"
#include "media/normalize.h"
#include "models/common/layers.h"
#include "models/common/views/inputs.h"
#include "models/common/weight_loader.h"
#include "models/internvl/config.h"
#include "models/registry.h"

namespace fovea::internvl {

struct Norm {
  std::variant<common::LayerNorm, common::RmsNorm> kind;
};

struct Attention {
  common::Attention plain;
  /// The norms of q and of k, over all heads together, where the tower has them.
  std::optional<std::array<common::RmsNorm, 2>> qk_norms;
};

/// A pre-norm block; its layer scales are in the weights of proj and fc2.
struct Layer {
  Norm norm1;
  Norm norm2;
  Attention attn;
  common::Mlp mlp;
};

/// Tower and projector. Move-only; shared read-only by all graphs.
struct Weights {
  common::PatchEmbedding patch_embedding;
  Tensor class_embedding;     ///< [1, hidden_size] f32
  Tensor position_embedding;  ///< [1 + patches, hidden_size] f32, in the order of the rows
  std::vector<Layer> layers;
  common::LayerNorm projector_norm;  ///< over joined_width
  common::Mlp projector;
};

/// The whole list of tensors.
/// Source: docs/reference/internvl.md, "Tensors".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

/// Bytes of square views in, projected tokens out. Asynchronous on ctx.stream; safe to capture.
/// @param in whose further stage is that of tokens.
/// @param out [views * tokens, llm_hidden_size].
/// Source: docs/reference/internvl.md, "Forward".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::ViewInputs& in, TensorView out);

/// InternVL 2 to 3.5 in the authors' format, and in that of transformers.
[[nodiscard]] const ModelFamily& chat_family() noexcept;
[[nodiscard]] const ModelFamily& native_family() noexcept;

}  // namespace fovea::internvl
