#pragma once

#include <cstdint>

#include "checkpoint/hf_config.h"
#include "fovea/tower/ops/linear.h"
#include "models/common/geometry.h"

namespace fovea::minimax_m3_vl {

/// The fields of config.json that the tower and its projector have, named as there. Defaults are
/// those of the reference's configuration classes.
struct Config {
  std::int64_t hidden_size = 1280;
  std::int64_t intermediate_size = 5120;
  std::int64_t num_hidden_layers = 32;
  std::int64_t num_attention_heads = 16;
  ops::Activation hidden_act = ops::Activation::kGeluErf;
  double layer_norm_eps = 1e-5;
  double rope_theta = 10000.0;
  /// Temporal patches of a video that attend to each other, where the processor file of videos says
  /// nothing.
  std::int64_t vision_segment_max_frames = 4;
  std::int64_t projector_hidden_size = 6144;
  std::int64_t text_hidden_size = 6144;  ///< text_config.hidden_size: columns of a row
  common::GridGeometry grid{.patch_size = 14, .spatial_merge_size = 2, .temporal_patch_size = 2};

  [[nodiscard]] std::int64_t head_dim() const { return hidden_size / num_attention_heads; }
  /// Angles that each of the three axes has.
  [[nodiscard]] std::int64_t axis_angles() const { return head_dim() / 3 / 2; }
  /// Columns of the projected patches that become one row, side by side.
  [[nodiscard]] std::int64_t joined_width() const { return grid.merge_area() * text_hidden_size; }
};

/// Reads and validates config.json.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have. Source: docs/reference/minimax_m3_vl.md, "Configuration".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

}  // namespace fovea::minimax_m3_vl
