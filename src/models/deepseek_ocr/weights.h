#pragma once

#include <array>
#include <vector>

#include "media/normalize.h"
#include "models/common/layers.h"
#include "models/common/weight_loader.h"
#include "models/deepseek_ocr/config.h"

namespace fovea::deepseek_ocr {

struct SamBlock {
  common::LayerNorm norm1;
  common::LayerNorm norm2;
  common::Attention attn;
  common::Mlp mlp;
  Tensor qkv_bias;  ///< [3 sam_width] f32: q, k, v of a token of zeros
  /// Relative positions [2 side - 1, head_dim] f32 per path: the same table twice in windowed
  /// blocks, resized to the grid of the view in global ones.
  std::array<Tensor, kNumPaths> rel_pos_h;
  std::array<Tensor, kNumPaths> rel_pos_w;
};

struct Sam {
  common::PatchEmbedding patch_embed;
  std::array<Tensor, kNumPaths> pos_embed;  ///< [grid^2, sam_width] f32
  std::vector<SamBlock> blocks;
  ops::PackedLinear neck_0;  ///< 1 x 1 convolution, sam_width -> 256
  common::LayerNorm neck_1;  ///< over channels
  common::Conv3x3 neck_2;    ///< 256 -> 256
  common::LayerNorm neck_3;
  common::Conv3x3 net_2;  ///< stride 2, 256 -> downsample_channels[0]
  common::Conv3x3 net_3;  ///< stride 2 -> downsample_channels[1]
};

struct Clip {
  Tensor class_embedding;                            ///< [1, clip_width] f32
  std::array<Tensor, kNumPaths> position_embedding;  ///< [tokens + 1, clip_width] f32
  common::LayerNorm pre_layrnorm;                    ///< upstream's spelling
  std::vector<common::Block> layers;
};

/// Both towers and what joins them. Move-only; shared read-only by all graphs.
struct Weights {
  Sam sam;
  Clip clip;
  ops::PackedLinear projector;  ///< clip_width + feature_width -> n_embed
  Tensor image_newline;         ///< [1, n_embed] f32
  Tensor view_seperator;        ///< [1, n_embed] f32; upstream's spelling
};

/// The whole list of tensors; position tables are resized to the views of both paths.
/// Source: docs/reference/deepseek_ocr.md, "Tensors" and "Position tables".
[[nodiscard]] Weights load_weights(common::WeightLoader& loader, const Config& config,
                                   const Views& views, const media::NormalizeTable& normalize);

}  // namespace fovea::deepseek_ocr
