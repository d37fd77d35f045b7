#pragma once

#include <array>
#include <vector>

#include "models/blocks/weight_loader.h"
#include "models/deepseek_ocr/config.h"

namespace fovea::deepseek_ocr {

struct SamBlockWeights {
  blocks::NormWeights norm1;  ///< [sam_width]
  blocks::NormWeights norm2;  ///< [sam_width]
  ops::PackedLinear qkv;      ///< sam_width -> 3 sam_width
  ops::PackedLinear proj;     ///< sam_width -> sam_width
  ops::PackedLinear lin1;     ///< sam_width -> 4 sam_width
  ops::PackedLinear lin2;     ///< 4 sam_width -> sam_width
  Tensor qkv_bias;            ///< [3 sam_width] f32: q, k, v of a token of zeros
  /// Relative positions [2 side - 1, head_dim] f32 per path: the same table twice in windowed
  /// blocks, resized to the grid of the view in global ones.
  std::array<Tensor, 2> rel_pos_h;
  std::array<Tensor, 2> rel_pos_w;
};

struct SamWeights {
  ops::PackedLinear patch_embed;    ///< 3 * 16 * 16 -> sam_width
  std::array<Tensor, 2> pos_embed;  ///< [grid^2, sam_width] f32, per path
  std::vector<SamBlockWeights> blocks;
  ops::PackedLinear neck_0;    ///< 1 x 1 convolution, sam_width -> 256
  blocks::NormWeights neck_1;  ///< over channels
  ops::PackedLinear neck_2;    ///< 3 x 3 convolution, 256 -> 256
  blocks::NormWeights neck_3;
  ops::PackedLinear net_2;  ///< 3 x 3 convolution of stride 2, 256 -> downsample_channels[0]
  ops::PackedLinear net_3;  ///< 3 x 3 convolution of stride 2 -> downsample_channels[1]
};

struct ClipLayerWeights {
  blocks::NormWeights layer_norm1;  ///< [clip_width]
  blocks::NormWeights layer_norm2;  ///< [clip_width]
  ops::PackedLinear qkv_proj;       ///< clip_width -> 3 clip_width
  ops::PackedLinear out_proj;       ///< clip_width -> clip_width
  ops::PackedLinear fc1;            ///< clip_width -> 4 clip_width
  ops::PackedLinear fc2;            ///< 4 clip_width -> clip_width
};

struct ClipWeights {
  Tensor class_embedding;                    ///< [1, clip_width] f32
  std::array<Tensor, 2> position_embedding;  ///< [tokens + 1, clip_width] f32, per path
  blocks::NormWeights pre_layrnorm;
  std::vector<ClipLayerWeights> layers;
};

/// Both towers and what joins them. Move-only; shared read-only by all graphs.
struct Weights {
  SamWeights sam;
  ClipWeights clip;
  ops::PackedLinear projector;  ///< clip_width + feature_width -> n_embed
  Tensor image_newline;         ///< [1, n_embed] f32
  Tensor view_seperator;        ///< [1, n_embed] f32
};

/// The whole list of tensors. @param views geometry of the views of each path.
/// Source: DeepSeek-OCR specification, section 3.
[[nodiscard]] Weights load_weights(blocks::WeightLoader& loader, const Config& config,
                                   const std::array<ViewGeometry, 2>& views);

}  // namespace fovea::deepseek_ocr
