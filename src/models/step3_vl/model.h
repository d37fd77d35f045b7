#pragma once

#include <array>
#include <vector>

#include "fovea/tower/ops/context.h"
#include "models/common/layers.h"
#include "models/common/views/inputs.h"
#include "models/common/weight_loader.h"
#include "models/registry.h"
#include "models/step3_vl/config.h"

namespace fovea::step3_vl {

/// A layer with a norm at the end of each branch.
struct Layer {
  common::Attention attn;
  common::LayerNorm layer_norm1;
  common::Mlp mlp;
  common::LayerNorm layer_norm2;
};

/// The tower on a device. Move-only; shared read-only by all graphs.
struct Weights {
  common::PatchEmbedding patch_embedding;   ///< over pixels of kLevelBytes bytes
  Tensor class_rows;                        ///< [4, hidden_size] f32: the class token
  std::array<Tensor, kNumPaths> positions;  ///< [4 + patches, hidden_size] f32
  std::vector<Layer> layers;
  ops::PackedLinear vit_downsampler;      ///< 2 x 2 convolution of stride 2 -> output_hidden_size
  common::Conv3x3 vit_downsampler2;       ///< stride 2 -> 2 * output_hidden_size
  ops::PackedLinear vit_large_projector;  ///< -> text_hidden_size
};

/// The whole list of tensors, by name and shape. Source: docs/reference/step3_vl.md, "Tensors".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config);

/// The inputs of the forward of a path. The tower runs on chunks of views, because its activations
/// are large.
[[nodiscard]] common::ViewLayout layout_of(const common::SquareView& view);

/// Level bytes of a chunk of square views in, rows out. Asynchronous on ctx.stream; safe to
/// capture. @param path whose positions fit the views. @param in of layout_of(kViews[path]).
/// @param out [views * tokens, text_hidden_size].
/// Source: docs/reference/step3_vl.md, "Forward".
void forward(ExecContext& ctx, const Weights& weights, Path path, const common::ViewBatch& in,
             TensorView out);

/// Step3-VL.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::step3_vl
