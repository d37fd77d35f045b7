#pragma once

#include "fovea/tower/ops/context.h"
#include "models/common/layers.h"
#include "models/common/processor_file.h"
#include "models/common/weight_loader.h"
#include "models/phi4_multimodal/config.h"
#include "models/phi4_multimodal/inputs.h"
#include "models/registry.h"

namespace fovea::phi4_multimodal {

/// The tower on a device. Move-only; shared read-only by all graphs.
struct Weights {
  common::SiglipTower tower;  ///< its patches are levels of several bytes
  Tensor row_end;             ///< [1, hidden_size] f32: the separator behind rows of tokens
  Tensor between;             ///< [1, hidden_size] f32: the one before the global view
  common::Mlp projector;      ///< hidden_size -> text_hidden_size, twice
};

/// The whole list of tensors, by name and shape. @param scaling of pixels, which the patch
/// embedding has in its weights. Source: docs/reference/phi4_multimodal.md, "Tensors".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const common::PixelScaling& scaling);

/// The tower: bytes in, rows out. Asynchronous on ctx.stream; safe to capture.
/// @param out [tokens, text_hidden_size]. Source: docs/reference/phi4_multimodal.md, "Forward".
void forward(ExecContext& ctx, const Config& config, const Weights& weights, const Inputs& in,
             TensorView out);

/// Phi-4-multimodal.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::phi4_multimodal
