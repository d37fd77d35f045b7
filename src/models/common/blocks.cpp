// Blocks of vision transformers, by the names of their layers.
#include "models/common/blocks.h"

#include <utility>

#include "core/check.h"

namespace fovea::common {

namespace {

ops::PackedLinear load_qkv(WeightLoader& loader, const std::string& block, const BlockNames& names,
                           const BlockShape& shape) {
  const std::int64_t width = shape.hidden_size;
  if (names.qkv.size() == 1) {
    return loader.linear(block + names.qkv.front(), 3 * width, {width}, shape.qkv_bias);
  }
  std::vector<std::string> parts;
  for (const std::string& part : names.qkv) parts.push_back(block + part);
  return loader.fused(parts, width, {width}, shape.qkv_bias);
}

/// The last layer of a branch, with its layer scale where the checkpoint stores one.
ops::PackedLinear load_last(WeightLoader& loader, const std::string& block, const std::string& name,
                            const std::string& scale, std::int64_t width, std::int64_t in_features,
                            WeightLoader::Bias bias) {
  const bool is_scaled = !scale.empty() && loader.stores(block + scale);
  return is_scaled ? loader.scaled_linear(block + name, block + scale, width, in_features)
                   : loader.linear(block + name, width, {in_features}, bias);
}

Block load_block(WeightLoader& loader, const std::string& block, const BlockNames& names,
                 const BlockShape& shape) {
  const std::int64_t width = shape.hidden_size;
  const std::int64_t wide = shape.intermediate_size;
  const auto epsilon = static_cast<float>(shape.layer_norm_eps);
  return {.norm1 = loader.layer_norm(block + names.norm1, width, epsilon),
          .norm2 = loader.layer_norm(block + names.norm2, width, epsilon),
          .attn = load_attention(loader, block, names, shape),
          .mlp = {.fc1 = loader.linear(block + names.fc1, wide, {width}),
                  .fc2 = load_last(loader, block, names.fc2, names.scale2, width, wide,
                                   WeightLoader::Bias::kYes),
                  .activation = shape.hidden_act}};
}

}  // namespace

Attention load_attention(WeightLoader& loader, const std::string& block, const BlockNames& names,
                         const BlockShape& shape) {
  const std::int64_t width = shape.hidden_size;
  return {.qkv = load_qkv(loader, block, names, shape),
          .proj = load_last(loader, block, names.proj, names.scale1, width, width, shape.proj_bias),
          .num_heads = shape.num_attention_heads};
}

BlockSequence load_blocks(WeightLoader& loader, const std::string& tower, const BlockNames& names,
                          const BlockShape& shape, std::int64_t count, std::int64_t first) {
  std::vector<Block> blocks;
  for (std::int64_t i = first; i < first + count; ++i) {
    const auto block = loader.block({.index = i, .count = first + count});
    blocks.push_back(load_block(loader, cat(tower, i, "."), names, shape));
  }
  return loader.block_sequence(std::move(blocks));
}

}  // namespace fovea::common
