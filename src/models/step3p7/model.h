#pragma once

#include "fovea/tower/ops/context.h"
#include "media/normalize.h"
#include "models/common/layers.h"
#include "models/common/views/inputs.h"
#include "models/common/weight_loader.h"
#include "models/registry.h"
#include "models/step3p7/config.h"

namespace fovea::step3p7 {

/// The tower on a device. Move-only; shared read-only by all graphs.
struct Weights {
  Tensor inv_freq;                     ///< [head_dim / 2] f32
  common::PatchEmbedding patch_embed;  ///< without bias
  Tensor positions;                    ///< [patches of the whole image, width] f32
  common::LayerNorm ln_pre;
  common::BlockSequence blocks;           ///< with layer scales in the last layers of both branches
  common::Conv3x3 vit_downsampler1;       ///< stride 2 -> 2 * width
  common::Conv3x3 vit_downsampler2;       ///< stride 2 -> 4 * width
  ops::PackedLinear vit_large_projector;  ///< -> text_hidden_size
};

/// The whole list of tensors, by name and shape. Rows of q and k are loaded in the order in which
/// halves of a head rotate. Source: docs/reference/step3p7.md, "Tensors".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

/// The inputs of the forward of a path. The tower runs on chunks of views, because its activations
/// are large.
[[nodiscard]] common::ViewLayout layout_of(const common::SquareView& view);

/// Square views in, rows out. Asynchronous on ctx.stream; safe to capture.
/// @param in a chunk of layout_of(a view). @param positions [views * patches, 4] i32: y, x, and the
/// sides of the grid, of every patch. @param out [views * tokens, text_hidden_size].
/// Source: docs/reference/step3p7.md, "Forward".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::ViewBatch& in, ConstTensorView positions, TensorView out);

/// Step-3.7 and Step3-VL-10B.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::step3p7
