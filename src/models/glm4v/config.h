#pragma once

#include <cstdint>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "fovea/tower/ops/linear.h"
#include "models/common/geometry.h"
#include "models/common/grid/processor.h"

namespace fovea::glm4v {

/// The vision tower's fields of config.json, named as there (vision_config.*). Defaults are those
/// of the reference's configuration class.
struct Config {
  std::int64_t depth = 24;
  std::int64_t hidden_size = 1536;  ///< columns of the tower
  std::int64_t num_heads = 12;
  std::int64_t image_size = 336;           ///< pixels a side that the table of positions is for
  std::int64_t out_hidden_size = 4096;     ///< columns of a row, and the wide side of a block's MLP
  std::int64_t intermediate_size = 13696;  ///< wide side of the merger's MLP
  bool attention_bias = false;             ///< of qkv
  double rms_norm_eps = 1e-5;
  double rope_theta = 10000.0;                          ///< rope_parameters.rope_theta
  ops::Activation hidden_act = ops::Activation::kSilu;  ///< of the gates
  common::GridGeometry grid{.patch_size = 14};

  [[nodiscard]] std::int64_t head_dim() const { return hidden_size / num_heads; }
  [[nodiscard]] std::int64_t position_side() const { return image_size / grid.patch_size; }
  /// Columns of the patches that the downsampling convolution joins.
  [[nodiscard]] std::int64_t joined_width() const { return grid.merge_area() * hidden_size; }
};

/// Reads and validates vision_config.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have. Source: docs/reference/glm4v.md, "Configuration".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

/// Sizes, sampling and scaling of images and videos, from the processor files.
/// @throws as common::read_grid_processor. Source: docs/reference/glm4v.md, "Processing" and
/// "Sampled frames".
[[nodiscard]] common::GridProcessing read_processing(const checkpoint::HfConfig& files,
                                                     const common::GridGeometry& grid,
                                                     const MediaOptions& media);

}  // namespace fovea::glm4v
