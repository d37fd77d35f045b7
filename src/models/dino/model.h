#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "fovea/tower/ops/context.h"
#include "media/normalize.h"
#include "models/common/layers.h"
#include "models/common/processor_file.h"
#include "models/common/views/inputs.h"
#include "models/common/weight_loader.h"
#include "models/dino/config.h"
#include "models/registry.h"

namespace fovea::dino {

/// An MLP of either kind.
struct FeedForward {
  std::variant<common::Mlp, common::GatedMlp> kind;
};

/// A pre-norm block for common::add_block, with the layer scales in its layers.
struct Layer {
  common::LayerNorm norm1;
  common::LayerNorm norm2;
  common::Attention attn;
  FeedForward mlp;
};

/// The tower on a device. Move-only; shared read-only by all graphs.
struct Weights {
  common::PatchEmbedding patch_embedding;
  Tensor cls_token;                       ///< [1, hidden_size] f32
  std::optional<Tensor> register_tokens;  ///< [num_register_tokens, hidden_size] f32
  std::optional<Tensor> positions;  ///< [class_rows + patches, hidden_size] f32, 0 of registers
  std::optional<Tensor> inv_freq;   ///< [head_dim / 2] f32 per half patch: see RotaryInput
  std::vector<Layer> layers;
  common::LayerNorm layernorm;
  std::optional<common::RmsNorm> unit;  ///< of vectors that are normalised
};

/// A view, its rows, and what becomes of them.
struct Tower {
  Config config;
  common::SquareView view;
  TowerOutput output = TowerOutput::kRows;

  [[nodiscard]] std::int64_t rows() const { return config.class_rows() + view.patches(); }
};

/// The whole list of tensors. Source: docs/reference/retrieval.md, "DINOv2" and "DINOv3".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Tower& tower,
                                   const common::PixelScaling& scaling);

/// Bytes of square views in, rows or vectors out. Asynchronous on ctx.stream; safe to capture.
/// @param positions of DINOv3, [views * rows, 4] i32: see ops::RopeAnglesArgs; patch (y, x) of g x
/// g is at (2 y + 1 - g, 2 x + 1 - g), class rows are at (0, 0), which turns nothing.
/// @param out [views * rows, hidden_size]; vectors are put to the first row of each view.
/// Source: docs/reference/retrieval.md, "DINOv2" and "DINOv3".
void forward(ExecContext& ctx, const Tower& tower, const Weights& weights,
             const common::ViewBatch& in, ConstTensorView positions, TensorView out);

/// DINOv2 with and without registers.
[[nodiscard]] const ModelFamily& v2_family() noexcept;
/// DINOv3 ViT.
[[nodiscard]] const ModelFamily& v3_family() noexcept;

}  // namespace fovea::dino
