#pragma once

#include <cstdint>
#include <string>

#include "core/json.h"
#include "media/normalize.h"
#include "models/common/layers.h"
#include "models/common/model.h"
#include "models/common/views/inputs.h"
#include "models/common/weight_loader.h"

namespace fovea::common {

// SigLIP over square views, which several language models read through projectors of their own.
// Source: docs/reference/siglip.md.

/// The fields of vision_config, named as there. Defaults are those of the reference's class.
struct SiglipConfig {
  std::int64_t hidden_size = 768;
  std::int64_t num_hidden_layers = 12;
  std::int64_t num_attention_heads = 12;
  std::int64_t intermediate_size = 3072;
  SquareView view{.side_px = 224, .patch_px = 16};  ///< its tokens are those of the projector
  double layer_norm_eps = 1e-6;
  ops::Activation hidden_act = ops::Activation::kGeluTanh;
};

/// Reads and validates vision_config; the patches of a token stay 1.
/// @throws Error(kCorruptData) naming the key for wrong types and sizes out of bounds,
/// Error(kUnsupported) for another tower, and as read_square_view.
/// Source: docs/reference/siglip.md, "Configuration".
[[nodiscard]] SiglipConfig read_siglip(const JsonView& vision);

/// The same without the view and model_type, for towers that have these by rules of their own.
/// @param defaults where a key is absent.
[[nodiscard]] SiglipConfig read_siglip_layers(const JsonView& vision, SiglipConfig defaults);

/// The lines about the tower that EncoderGraphModel::facts begins with, and `more`.
[[nodiscard]] Facts siglip_facts(const SiglipConfig& config, const Facts& more = {});

/// The tower on a device, without a norm behind its blocks. Move-only.
struct SiglipTower {
  PatchEmbedding patch_embedding;
  Tensor position_embedding;  ///< [patches, hidden_size] f32, in the order of the rows
  BlockSequence blocks;
};

/// Its tensors. @param name what their names begin with: "vision_tower.vision_model.".
/// Source: docs/reference/siglip.md, "Tensors".
[[nodiscard]] SiglipTower load_siglip(WeightLoader& loader, const std::string& name,
                                      const SiglipConfig& config,
                                      const media::NormalizeTable& normalize);

/// The blocks alone, for towers that have them behind patches or positions of their own.
/// @param name as load_siglip. @param config whose view counts for nothing.
[[nodiscard]] BlockSequence load_siglip_blocks(WeightLoader& loader, const std::string& name,
                                               const SiglipConfig& config);

/// `count` of them from number `first` on, for towers that do something else in between.
[[nodiscard]] BlockSequence load_siglip_blocks(WeightLoader& loader, const std::string& name,
                                               const SiglipConfig& config, std::int64_t first,
                                               std::int64_t count);

/// The attention of such a block. @param name of the block, and a dot.
[[nodiscard]] Attention load_siglip_attention(WeightLoader& loader, const std::string& name,
                                              const SiglipConfig& config);

/// The norm behind the blocks, for families that read normed rows.
[[nodiscard]] LayerNorm load_siglip_norm(WeightLoader& loader, const std::string& name,
                                         const SiglipConfig& config);

/// The inputs of the tower, with as many views a chunk as bound its activations. Their further
/// stage is that of tokens.
[[nodiscard]] ViewLayout siglip_layout(const SiglipConfig& config);

/// x = blocks(patches + positions), rows in the order of for_each_patch, chunk by chunk.
/// Asynchronous on ctx.stream; safe to capture. @param in of siglip_layout(). @param x [views *
/// patches, hidden_size]. Source: docs/reference/siglip.md, "Forward".
void siglip(ExecContext& ctx, const SiglipTower& tower, const ViewInputs& in, TensorView x);

}  // namespace fovea::common
