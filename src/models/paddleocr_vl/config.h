#pragma once

#include <cstdint>

#include "checkpoint/hf_config.h"
#include "fovea/options.h"
#include "fovea/tower/ops/linear.h"
#include "models/common/geometry.h"
#include "models/common/grid/processor.h"

namespace fovea::paddleocr_vl {

/// The fields of config.json that the tower and its projector have, named as there
/// (vision_config.*). Defaults are those of the reference's configuration class.
struct Config {
  std::int64_t num_hidden_layers = 27;
  std::int64_t hidden_size = 1152;
  std::int64_t intermediate_size = 4304;
  std::int64_t num_attention_heads = 16;
  std::int64_t image_size = 384;  ///< pixels a side that the table of positions is for
  double layer_norm_eps = 1e-6;   ///< of the tower
  double rope_theta = 10000.0;    ///< rope_parameters.rope_theta
  ops::Activation hidden_act = ops::Activation::kGeluTanh;  ///< of the blocks
  std::int64_t text_hidden_size = 1024;  ///< of the language model: columns of a row
  common::GridGeometry grid{.patch_size = 14, .temporal_patch_size = 1};

  [[nodiscard]] std::int64_t head_dim() const { return hidden_size / num_attention_heads; }
  [[nodiscard]] std::int64_t position_side() const { return image_size / grid.patch_size; }
  /// Columns of the rows that the projector joins.
  [[nodiscard]] std::int64_t joined_width() const { return grid.merge_area() * hidden_size; }
};

/// Reads and validates vision_config and the width of the language model.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have. Source: docs/reference/paddleocr_vl.md, "Configuration".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

/// Sizes and scaling of images, from the processor files.
/// @throws as common::read_grid_processor. Source: docs/reference/paddleocr_vl.md, "Processing".
[[nodiscard]] common::GridProcessing read_processing(const checkpoint::HfConfig& files,
                                                     const common::GridGeometry& grid,
                                                     const MediaOptions& media);

}  // namespace fovea::paddleocr_vl
