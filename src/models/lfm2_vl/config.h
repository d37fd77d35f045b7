#pragma once

#include <cstdint>

#include "checkpoint/hf_config.h"
#include "fovea/tower/ops/linear.h"
#include "models/common/geometry.h"

namespace fovea::lfm2_vl {

/// The fields of config.json that the tower and its projector have, named as there. Defaults are
/// those of the reference's configuration classes.
struct Config {
  std::int64_t num_hidden_layers = 12;
  std::int64_t hidden_size = 768;
  std::int64_t intermediate_size = 3072;
  std::int64_t num_attention_heads = 12;
  std::int64_t num_patches = 256;  ///< entries of the table of positions, a square
  double layer_norm_eps = 1e-6;    ///< of the tower
  ops::Activation hidden_act = ops::Activation::kGeluTanh;           ///< of the blocks
  ops::Activation projector_hidden_act = ops::Activation::kGeluErf;  ///< between its two layers
  std::int64_t projector_hidden_size = 2560;
  bool projector_bias = true;
  bool projector_use_layernorm = true;
  std::int64_t text_hidden_size = 2560;  ///< text_config.hidden_size: columns of a row
  common::GridGeometry grid{.patch_size = 16, .spatial_merge_size = 2, .temporal_patch_size = 1};

  [[nodiscard]] std::int64_t position_side() const;
  /// Columns of the rows that the projector joins.
  [[nodiscard]] std::int64_t joined_width() const { return grid.merge_area() * hidden_size; }
};

/// Reads and validates config.json.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have. Source: docs/reference/lfm2_vl.md, "Configuration".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

}  // namespace fovea::lfm2_vl
