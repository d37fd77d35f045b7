#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/common/layers.h"
#include "models/common/weight_loader.h"

namespace fovea::common {

/// The names of the layers of a block, behind that of the block; as timm's vision transformers have
/// them.
struct BlockNames {
  std::string norm1 = "norm1";
  std::string norm2 = "norm2";
  std::vector<std::string> qkv{"attn.qkv"};  ///< one layer of q, k and v, or three
  std::string proj = "attn.proj";
  std::string fc1 = "mlp.fc1";
  std::string fc2 = "mlp.fc2";
  /// Layer scales of proj and of fc2, for checkpoints that may store them; else empty.
  std::string scale1, scale2;
};

/// The sizes of a block, under the names of config.json, and which of its layers have a bias.
struct BlockShape {
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t num_attention_heads = 0;
  double layer_norm_eps = 1e-6;
  ops::Activation hidden_act = ops::Activation::kGeluErf;
  WeightLoader::Bias qkv_bias = WeightLoader::Bias::kYes;
  WeightLoader::Bias proj_bias = WeightLoader::Bias::kYes;
};

/// Those of a Config whose fields have these names.
template <class Config>
[[nodiscard]] BlockShape block_shape(const Config& c) {
  return {.hidden_size = c.hidden_size,
          .intermediate_size = c.intermediate_size,
          .num_attention_heads = c.num_attention_heads,
          .layer_norm_eps = c.layer_norm_eps,
          .hidden_act = c.hidden_act};
}

/// The attention of a block. @param block the name of the block, and a dot.
[[nodiscard]] Attention load_attention(WeightLoader& loader, const std::string& block,
                                       const BlockNames& names, const BlockShape& shape);

/// `count` blocks of equal shape from number `first` on. @param tower the beginning of the
/// names of blocks, before their number: "vision.blocks.".
[[nodiscard]] BlockSequence load_blocks(WeightLoader& loader, const std::string& tower,
                                        const BlockNames& names, const BlockShape& shape,
                                        std::int64_t count, std::int64_t first = 0);

}  // namespace fovea::common
