#pragma once

#include "fovea/tower/ops/context.h"
#include "models/common/layers.h"
#include "models/common/views/siglip.h"
#include "models/common/weight_loader.h"
#include "models/molmo2/config.h"
#include "models/molmo2/inputs.h"
#include "models/registry.h"

namespace fovea::molmo2 {

/// Attention of the mean of the patches of a token to them.
struct Pooling {
  ops::PackedLinear wq;   ///< feature_width -> hidden_size
  ops::PackedLinear wkv;  ///< feature_width -> k | v, heads contiguous in each
  ops::PackedLinear wo;   ///< hidden_size -> hidden_size
};

/// The tower on a device. Move-only; shared read-only by all graphs.
struct Weights {
  common::SiglipTower tower;
  Tensor frame_bytes;  ///< [3, 256] f32: the value of every byte of frames, per channel
  Pooling pooling;
  common::GatedMlp projector;  ///< hidden_size -> text_hidden_size
};

/// The whole list of tensors, by name and shape. Source: docs/reference/molmo2.md, "Tensors".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const Processing& processing);

/// The tower: bytes in, rows out. Asynchronous on ctx.stream; safe to capture.
/// @param out [tokens, text_hidden_size]. Source: docs/reference/molmo2.md, "Forward".
void forward(ExecContext& ctx, const Config& config, const Weights& weights, const Inputs& in,
             TensorView out);

/// Molmo2.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::molmo2
