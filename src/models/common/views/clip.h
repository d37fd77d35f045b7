#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/json.h"
#include "media/normalize.h"
#include "models/common/layers.h"
#include "models/common/views/inputs.h"
#include "models/common/weight_loader.h"

namespace fovea::common {

// CLIP's vision tower over square views. Source: docs/reference/retrieval.md, "CLIP".

/// The fields of vision_config, named as there. Defaults are those of the reference's class.
struct ClipConfig {
  std::int64_t hidden_size = 768;
  std::int64_t num_hidden_layers = 12;
  std::int64_t num_attention_heads = 12;
  std::int64_t intermediate_size = 3072;
  SquareView view{.side_px = 224, .patch_px = 32};
  double layer_norm_eps = 1e-5;
  ops::Activation hidden_act = ops::Activation::kQuickGelu;
};

/// Reads and validates vision_config.
/// @throws Error(kCorruptData) naming the key for wrong types and sizes out of bounds,
/// Error(kUnsupported) for another tower, and as read_square_view.
[[nodiscard]] ClipConfig read_clip(const JsonView& vision);

/// The lines about the tower that EncoderGraphModel::facts begins with.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> clip_facts(const ClipConfig& config);

/// The tower on a device, without the norm behind its blocks. Move-only.
struct ClipTower {
  PatchEmbedding patch_embedding;
  Tensor class_embedding;     ///< [1, hidden_size] f32
  Tensor position_embedding;  ///< [1 + patches, hidden_size] f32
  LayerNorm pre_layrnorm;     ///< spelled as in checkpoints
  BlockSequence blocks;
};

/// Its tensors, with the first `num_layers` of its blocks.
/// @param name what their names begin with: "vision_model.".
[[nodiscard]] ClipTower load_clip(WeightLoader& loader, const std::string& name,
                                  const ClipConfig& config, std::int64_t num_layers,
                                  const media::NormalizeTable& normalize);

/// The norm behind the blocks, which the reference applies to class rows alone.
[[nodiscard]] LayerNorm load_clip_norm(WeightLoader& loader, const std::string& name,
                                       const ClipConfig& config);

/// x = blocks(pre_layrnorm([class embedding; conv(normalise(pixels))] + positions)), the class row
/// of every view before its patches, which go row by row of the image. Asynchronous on ctx.stream;
/// safe to capture. @param x [views * (1 + patches), hidden_size].
void clip(ExecContext& ctx, const ClipTower& tower, const ViewBatch& in, TensorView x);

}  // namespace fovea::common
