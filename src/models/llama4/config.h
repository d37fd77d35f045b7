#pragma once

#include <cstdint>

#include "checkpoint/hf_config.h"
#include "models/common/geometry.h"

namespace fovea::llama4 {

/// The vision tower's fields of config.json, named as there (vision_config.*). Defaults are those
/// of the reference's configuration class.
struct Config {
  std::int64_t num_hidden_layers = 34;
  std::int64_t hidden_size = 768;
  std::int64_t intermediate_size = 5632;
  std::int64_t num_attention_heads = 16;
  std::int64_t vision_output_dim = 7680;  ///< columns between the layers of the adapter
  std::int64_t text_hidden_size = 5120;   ///< text_config.hidden_size: columns of a row
  double rope_theta = 10000.0;
  /// image_size, patch_size, and 1 / pixel_shuffle_ratio.
  common::SquareView view{.side_px = 448, .patch_px = 14, .merge = 2};

  [[nodiscard]] std::int64_t head_dim() const { return hidden_size / num_attention_heads; }
  /// Columns of the patches that make a token.
  [[nodiscard]] std::int64_t joined_width() const { return view.merge * view.merge * hidden_size; }
};

/// Reads and validates vision_config and the width of the language model.
/// @throws Error(kCorruptData) naming the key for wrong types and widths that do not fit each
/// other, Error(kUnsupported) for values this tower does not have.
/// Source: docs/reference/llama4.md, "Configuration".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

}  // namespace fovea::llama4
