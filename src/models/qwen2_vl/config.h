#pragma once

#include <cstdint>

#include "checkpoint/hf_config.h"
#include "fovea/tower/ops/linear.h"
#include "models/common/geometry.h"

namespace fovea::qwen2_vl {

/// The vision tower's fields of config.json, named as there (vision_config.*). Defaults are those
/// of the reference's configuration class.
struct Config {
  std::int64_t depth = 32;
  std::int64_t embed_dim = 1280;    ///< columns of the tower
  std::int64_t hidden_size = 3584;  ///< columns of a row, those of the language model
  double mlp_ratio = 4;
  std::int64_t num_heads = 16;
  double rope_theta = 10000.0;                               ///< rope_parameters.rope_theta
  ops::Activation hidden_act = ops::Activation::kQuickGelu;  ///< of the MLP; the merger's is erf
  common::GridGeometry grid{.patch_size = 14};

  [[nodiscard]] std::int64_t head_dim() const { return embed_dim / num_heads; }
  [[nodiscard]] std::int64_t mlp_width() const {
    return static_cast<std::int64_t>(static_cast<double>(embed_dim) * mlp_ratio);
  }
  /// Columns of the rows that the merger joins.
  [[nodiscard]] std::int64_t joined_width() const { return grid.merge_area() * embed_dim; }
};

/// Reads and validates vision_config.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have. Source: docs/reference/qwen2_vl.md, "Configuration".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

}  // namespace fovea::qwen2_vl
