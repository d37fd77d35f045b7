#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/json.h"
#include "fovea/tower/ops/context.h"
#include "media/normalize.h"
#include "models/common/layers.h"
#include "models/common/views/inputs.h"
#include "models/common/weight_loader.h"

namespace fovea::common {

// SAM as an encoder of views of several sizes: blocks whose attention has relative positions, most
// of them inside windows, a neck, and two convolutions of stride 2. Sources: Kirillov et al.,
// "Segment Anything", arXiv:2304.02643; docs/reference/deepseek_ocr.md, "SAM".

struct SamConfig {
  std::int64_t width = 768;
  std::int64_t heads = 12;
  std::int64_t layers = 12;
  std::int64_t mlp_width = 3072;
  std::vector<std::int64_t> global_attn_indexes{2, 5, 8, 11};  ///< blocks without windows
  std::array<std::int64_t, 2> downsample_channels{512, 1024};
  std::int64_t neck_channels = 256;
  std::int64_t window = 14;      ///< tokens a side
  std::int64_t patch = 16;       ///< pixels a side
  std::int64_t grid = 64;        ///< side of the stored table of positions
  double layer_norm_eps = 1e-6;  ///< of the blocks
  ops::Activation hidden_act = ops::Activation::kGeluErf;

  [[nodiscard]] std::int64_t head_dim() const { return width / heads; }
  /// Channels of the features: what SAM gives for each of its tokens.
  [[nodiscard]] std::int64_t feature_width() const { return downsample_channels[1]; }
  [[nodiscard]] bool is_global_block(std::int64_t layer) const;
};

struct SamBlock {
  LayerNorm norm1;
  LayerNorm norm2;
  Attention attn;
  Mlp mlp;
  Tensor qkv_bias;  ///< [3 width] f32: q, k, v of a token of zeros
  /// Relative positions [2 side - 1, head_dim] f32 for each size of views: the same table in
  /// windowed blocks, resized to the grid of the view in global ones.
  std::vector<Tensor> rel_pos_h;
  std::vector<Tensor> rel_pos_w;
};

struct Sam {
  PatchEmbedding patch_embed;
  std::vector<Tensor> pos_embed;  ///< [grid^2, width] f32 for each size of views
  std::vector<SamBlock> blocks;
  ops::PackedLinear neck_0;  ///< 1 x 1 convolution, width -> neck_channels
  LayerNorm neck_1;          ///< over channels
  Conv3x3 neck_2;            ///< neck_channels -> neck_channels
  LayerNorm neck_3;
  Conv3x3 net_2;  ///< stride 2, neck_channels -> downsample_channels[0]
  Conv3x3 net_3;  ///< stride 2 -> downsample_channels[1]
};

/// The keys of a vendor's file into `c`: width, heads, layers, global_attn_indexes and
/// downsample_channels. The MLP is four times as wide as the blocks.
/// @throws Error(kCorruptData) naming the key for wrong types and sizes out of bounds,
/// Error(kUnsupported) for heads that are not of whole vectors.
void read_sam(const JsonView& file, SamConfig& c);

/// A square view as SAM sees it; two of its convolutions have stride 2.
[[nodiscard]] constexpr SquareView sam_view(std::int64_t side_px, std::int64_t patch_px) {
  return {.side_px = side_px, .patch_px = patch_px, .stride = 4};
}

/// The tensors `sam_model.*`; tables of positions are resized to the views.
/// Source: docs/reference/deepseek_ocr.md, "Tensors" and "Position tables".
[[nodiscard]] Sam load_sam(WeightLoader& loader, const SamConfig& config,
                           std::span<const SquareView> views,
                           const media::NormalizeTable& normalize);

/// Lets SAM run on chunks of views, because its activations are large: views_per_chunk and
/// chunk_stages of a layout.
void set_sam_chunks(ViewLayout& layout);

/// Bytes of views in, features out. Asynchronous on ctx.stream; safe to capture.
/// @param view number of the size of the views among those that load_sam was given.
/// @param in of a layout with set_sam_chunks. @param features [views * tokens, feature_width].
/// Source: docs/reference/deepseek_ocr.md, "SAM".
void sam(ExecContext& ctx, const SamConfig& config, const Sam& weights, std::size_t view,
         const ViewInputs& in, TensorView features);

}  // namespace fovea::common
