#pragma once

#include <cstdint>
#include <vector>

#include "fovea/tower/ops/context.h"
#include "media/normalize.h"
#include "models/common/layers.h"
#include "models/common/views/inputs.h"
#include "models/common/weight_loader.h"
#include "models/llama4/config.h"
#include "models/registry.h"

namespace fovea::llama4 {

/// The tower on a device. Move-only; shared read-only by all graphs.
struct Weights {
  Tensor inv_freq;  ///< [head_dim / 2] f32
  common::PatchEmbedding patch_embedding;
  Tensor class_embedding;       ///< [1, hidden_size] f32
  Tensor positional_embedding;  ///< [patches + 1, hidden_size] f32, in the order of rows
  common::LayerNorm layernorm_pre;
  std::vector<common::Block> layers;
  common::LayerNorm layernorm_post;
  ops::PackedLinear adapter_fc1;  ///< joined_width -> vision_output_dim
  ops::PackedLinear adapter_fc2;  ///< vision_output_dim -> vision_output_dim
  ops::PackedLinear projector;    ///< vision_output_dim -> text_hidden_size
};

/// The whole list of tensors, by name and shape. Positions are loaded in the order of the tower's
/// rows, rows of q and k in the order in which halves of a head rotate.
/// Source: docs/reference/llama4.md, "Tensors" and "Rotary positions".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const media::NormalizeTable& normalize);

/// The inputs of the forward, but for the positions. Their further stage is that of tokens.
[[nodiscard]] common::ViewLayout layout_of(const Config& config);

/// The place of every row in its tile for the rotary embedding: patches count from 1, the class
/// token, which comes last, is at 0 and does not turn.
/// @param positions host, [tiles * rows of a tile, 4].
void write_positions(const common::SquareView& view, std::int64_t tiles, std::int32_t* positions);

/// The tower: bytes of tiles in, rows out. Asynchronous on ctx.stream; safe to capture.
/// @param in of layout_of(config). @param positions [rows of all tiles, 4] i32: see
/// ops::RopeAnglesArgs. @param out [tiles * tokens, text_hidden_size].
/// Source: docs/reference/llama4.md, "Forward".
void forward(ExecContext& ctx, const Config& config, const Weights& weights,
             const common::ViewBatch& in, ConstTensorView positions, TensorView out);

/// Llama 4.
[[nodiscard]] const ModelFamily& family() noexcept;

}  // namespace fovea::llama4
