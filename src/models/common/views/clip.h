#pragma once

#include <cstdint>
#include <string>

#include "core/json.h"
#include "media/normalize.h"
#include "models/common/layers.h"
#include "models/common/views/inputs.h"
#include "models/common/views/siglip.h"
#include "models/common/weight_loader.h"

namespace fovea::common {

// CLIP's vision transformer over square views. Its blocks have the arithmetic and the names of
// SigLIP's; a class row and a norm come before them.
// Source: docs/reference/clip.md.

/// The fields of vision_config are those of SigLIP, with other defaults.
using ClipConfig = SiglipConfig;

/// Reads and validates vision_config; the patches of a token stay 1.
/// @throws Error(kCorruptData) naming the key for wrong types and sizes out of bounds,
/// Error(kUnsupported) for another tower. Source: docs/reference/clip.md, "Configuration".
[[nodiscard]] ClipConfig read_clip(const JsonView& vision);

/// The tower on a device, without a norm behind its blocks. Move-only.
struct ClipTower {
  PatchEmbedding patch_embedding;  ///< no bias
  Tensor class_embedding;          ///< [1, hidden_size] f32
  Tensor position_embedding;       ///< [1 + patches, hidden_size] f32, the class row
                                   ///< first
  LayerNorm pre_layrnorm;          ///< spelt as in the checkpoints
  BlockSequence blocks;
};

/// Its tensors. @param name what their names begin with: "vision_tower.vision_model.".
/// Source: docs/reference/clip.md, "Tensors".
[[nodiscard]] ClipTower load_clip(WeightLoader& loader, const std::string& name,
                                  const ClipConfig& config, const media::NormalizeTable& normalize);

/// The inputs of the tower: a class row before the patches, and as many views a chunk as bound its
/// activations. The further stage is that of patches.
[[nodiscard]] ViewLayout clip_layout(const ClipConfig& config);

/// x = blocks(LN([class row; patches] + positions)), view after view. Asynchronous on ctx.stream;
/// safe to capture. @param x [views * (1 + patches), hidden_size]. Source: docs/reference/clip.md,
/// "Forward".
void clip(ExecContext& ctx, const ClipTower& tower, const ViewBatch& in, TensorView x);
/// The same chunk by chunk. @param in of clip_layout().
void clip(ExecContext& ctx, const ClipTower& tower, const ViewInputs& in, TensorView x);

}  // namespace fovea::common
