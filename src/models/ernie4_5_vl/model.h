#pragma once

#include <vector>

#include "fovea/tower/ops/context.h"
#include "media/normalize.h"
#include "models/common/grid/processor.h"
#include "models/common/layers.h"
#include "models/common/weight_loader.h"
#include "models/ernie4_5_vl/config.h"
#include "models/ernie4_5_vl/pairs.h"
#include "models/registry.h"

namespace fovea::ernie4_5_vl {

/// A part of the resampler: LN(fc2(gelu(fc1(x)))).
struct JoinedMlp {
  common::Mlp mlp;
  common::LayerNorm norm;
};

/// The tower on a device. Move-only; shared read-only by all graphs.
struct Weights {
  Tensor inv_freq;                     ///< [head_dim / 2] f32
  common::PatchEmbedding patch_embed;  ///< without bias
  common::BlockSequence blocks;
  common::LayerNorm ln;
  JoinedMlp spatial_linear;   ///< 2 x 2 patches -> joined_width
  JoinedMlp temporal_linear;  ///< two frames -> joined_width
  ops::PackedLinear mlp;      ///< -> text_hidden_size
  common::RmsNorm after_norm;
};

/// The whole list of tensors, by name and shape. Source: docs/reference/ernie4_5_vl.md, "Tensors".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

/// Sizes, sampling and scaling from the processor files. Videos are refused where the time is drawn
/// on their frames. @throws as common::read_grid_processor.
/// Source: docs/reference/ernie4_5_vl.md, "Processing".
[[nodiscard]] common::GridProcessing read_processing(const checkpoint::HfConfig& files,
                                                     const common::GridGeometry& geometry,
                                                     const MediaOptions& media);

/// The tower: bytes in, rows out. Asynchronous on ctx.stream; safe to capture.
/// @param out [tokens, text_hidden_size]. Source: docs/reference/ernie4_5_vl.md, "Forward".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::GridInputs& in, const PairInputs& pairs, TensorView out);

/// ERNIE-4.5-VL.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::ernie4_5_vl
