#pragma once

#include <cstdint>

#include "checkpoint/hf_config.h"
#include "fovea/tower/ops/linear.h"
#include "models/common/geometry.h"

namespace fovea::nemotron_h_omni {

/// The fields of config.json that the tower and its projector have, named as transformers names
/// them. Defaults are those of the reference's configuration classes.
struct Config {
  std::int64_t hidden_size = 1280;
  std::int64_t num_hidden_layers = 32;
  std::int64_t num_attention_heads = 16;
  std::int64_t intermediate_size = 5120;  ///< hidden_size x mlp_ratio
  std::int64_t max_img_size = 2048;       ///< pixels a side of the table of positions
  std::int64_t num_cls_tokens = 3;
  std::int64_t num_registers = 7;
  double layer_norm_eps = 1e-6;
  ops::Activation hidden_act = ops::Activation::kGeluErf;
  bool qkv_bias = true;
  /// Whether the language model predicts several tokens, and a norm without weights ends the tower.
  bool vision_final_layernorm = false;
  double video_pruning_rate = 0;  ///< videos are refused above 0
  std::int64_t projector_hidden_size = 4096;
  std::int64_t text_hidden_size = 0;  ///< of the language model: columns of a row
  common::GridGeometry grid{.patch_size = 16, .spatial_merge_size = 2, .temporal_patch_size = 2};

  /// Class and register tokens, which begin every sequence.
  [[nodiscard]] std::int64_t class_rows() const { return num_cls_tokens + num_registers; }
  /// Patches a side of the table of positions.
  [[nodiscard]] std::int64_t position_side() const { return max_img_size / grid.patch_size; }
  /// Columns of the patches that become one row, side by side.
  [[nodiscard]] std::int64_t joined_width() const { return grid.merge_area() * hidden_size; }
};

/// Reads and validates config.json, as transformers writes it or as the checkpoints have it, whose
/// vision_config holds the arguments of the training program.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have. Source: docs/reference/nemotron_h_omni.md, "Configuration".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

}  // namespace fovea::nemotron_h_omni
