#pragma once

#include <array>
#include <optional>

#include "fovea/tower/ops/context.h"
#include "models/common/layers.h"
#include "models/common/processor_file.h"
#include "models/common/weight_loader.h"
#include "models/nemotron_h_omni/config.h"
#include "models/nemotron_h_omni/inputs.h"
#include "models/registry.h"

namespace fovea::nemotron_h_omni {

/// The tower on a device. Move-only; shared read-only by all graphs.
struct Weights {
  Tensor levels;               ///< [3, 256] f32: common::level_table()
  ops::PackedLinear embedder;  ///< levels of a patch -> hidden_size
  /// The same of videos, whose patches are pairs: what the first frame adds, and the second.
  std::array<ops::PackedLinear, 2> video_embedder;
  Tensor class_rows;      ///< [class_rows, hidden_size] f32
  Tensor position_table;  ///< [position_side^2, hidden_size] f32
  common::BlockSequence blocks;
  std::optional<common::LayerNorm> final_norm;
  common::RmsNorm projector_norm;  ///< of joined rows
  common::Mlp projector;           ///< merge_area * hidden_size -> text_hidden_size
};

/// The whole list of tensors, by name and shape. @param scaling of pixels, which the embedders have
/// in their weights. Source: docs/reference/nemotron_h_omni.md, "Tensors".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const common::PixelScaling& scaling);

/// The tower: bytes in, rows out. Asynchronous on ctx.stream; safe to capture.
/// @param out [tokens, text_hidden_size]. Source: docs/reference/nemotron_h_omni.md, "Forward".
void forward(ExecContext& ctx, const Config& config, const Weights& weights, const Inputs& in,
             TensorView out);

/// Nemotron 3 Omni.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::nemotron_h_omni
