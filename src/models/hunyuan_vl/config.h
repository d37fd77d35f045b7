#pragma once

#include <cstdint>

#include "checkpoint/hf_config.h"
#include "fovea/tower/ops/linear.h"
#include "models/common/geometry.h"

namespace fovea::hunyuan_vl {

/// The fields of config.json that the tower and its projector have, named as there
/// (vision_config.*). Defaults are those of the reference's configuration class.
struct Config {
  std::int64_t num_hidden_layers = 27;
  std::int64_t hidden_size = 1152;
  std::int64_t intermediate_size = 4304;
  std::int64_t num_attention_heads = 16;
  std::int64_t max_image_size = 2048;  ///< pixels a side that the table of positions is for
  double rms_norm_eps = 1e-5;          ///< of all norms, those with a mean as well
  ops::Activation hidden_act = ops::Activation::kGeluErf;  ///< of blocks and projector
  std::int64_t text_hidden_size = 1024;  ///< of the language model: columns of a row
  common::GridGeometry grid{.patch_size = 16, .temporal_patch_size = 1};

  [[nodiscard]] std::int64_t position_side() const { return max_image_size / grid.patch_size; }
  /// Columns of the rows that the projector joins, and of its two layers.
  [[nodiscard]] std::int64_t joined_width() const { return grid.merge_area() * hidden_size; }
  [[nodiscard]] std::int64_t conv_width() const { return 2 * hidden_size; }
  [[nodiscard]] std::int64_t wide() const { return 4 * hidden_size; }
};

/// Reads and validates vision_config and the width of the language model.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have. Source: docs/reference/hunyuan_vl.md, "Configuration".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

}  // namespace fovea::hunyuan_vl
