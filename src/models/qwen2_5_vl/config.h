#pragma once

#include <cstdint>
#include <vector>

#include "checkpoint/hf_config.h"
#include "fovea/tower/ops/linear.h"
#include "models/common/geometry.h"

namespace fovea::qwen2_5_vl {

/// The vision tower's fields of config.json, named as there (vision_config.*). Defaults are those
/// of the reference's configuration class.
struct Config {
  std::int64_t depth = 32;
  std::int64_t hidden_size = 3584;  ///< columns of the tower; published files say 1280
  std::int64_t intermediate_size = 3420;
  std::int64_t num_heads = 16;
  std::int64_t num_key_value_heads = 16;  ///< absent: as num_heads, EXAONE 4.5: 8
  std::int64_t out_hidden_size = 3584;    ///< columns of a row
  std::int64_t window_size = 112;         ///< pixels a side
  std::vector<std::int64_t> fullatt_block_indexes{7, 15, 23, 31};
  double rope_theta = 10000.0;                          ///< rope_parameters.rope_theta
  ops::Activation hidden_act = ops::Activation::kSilu;  ///< of the MLP; the merger's is erf
  common::GridGeometry grid{.patch_size = 14};

  [[nodiscard]] std::int64_t head_dim() const { return hidden_size / num_heads; }
  /// Columns of the rows that the merger joins.
  [[nodiscard]] std::int64_t joined_width() const { return grid.merge_area() * hidden_size; }
  /// Tokens a side of a window.
  [[nodiscard]] std::int64_t window_side() const { return window_size / grid.resize_factor(); }
  /// Blocks that attend to whole frames.
  [[nodiscard]] std::int64_t num_full() const;
  [[nodiscard]] bool is_full(std::int64_t block) const;
};

/// Reads and validates vision_config.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have. Source: docs/reference/qwen2_5_vl.md, "Configuration".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

}  // namespace fovea::qwen2_5_vl
