#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/hf_config.h"
#include "fovea/tower/ops/linear.h"
#include "models/common/views/siglip.h"

namespace fovea::molmo2 {

/// The fields of config.json that the tower and its adapter have, named as there. Defaults are
/// those of the reference's configuration classes.
struct Config {
  /// vision_config; of its blocks those that run: up to the last that the adapter reads.
  common::SiglipConfig tower{.hidden_size = 1152,
                             .num_hidden_layers = 25,
                             .num_attention_heads = 16,
                             .intermediate_size = 4304,
                             .view = {.side_px = 378, .patch_px = 14}};
  bool attention_bias = true;
  std::vector<std::int64_t> vit_layers{24, 18};  ///< blocks whose rows are side by side
  std::int64_t adapter_heads = 16;               ///< adapter_config.num_attention_heads
  std::int64_t adapter_intermediate_size = 18944;
  bool adapter_attention_bias = true;
  ops::Activation adapter_hidden_act = ops::Activation::kSilu;
  std::int64_t text_hidden_size = 3584;  ///< adapter_config.text_hidden_size: columns of a row

  [[nodiscard]] std::int64_t adapter_head_dim() const { return tower.hidden_size / adapter_heads; }
  /// Columns of the rows that are pooled.
  [[nodiscard]] std::int64_t feature_width() const {
    return std::ssize(vit_layers) * tower.hidden_size;
  }
};

/// Reads and validates config.json, under the names of transformers or of the checkpoints.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have. Source: docs/reference/molmo2.md, "Configuration".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

}  // namespace fovea::molmo2
