#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/hf_config.h"
#include "fovea/tower/ops/linear.h"
#include "models/common/geometry.h"

namespace fovea::step3p7 {

/// The vision tower's fields of config.json, named as in published files (vision_config.*).
/// Defaults are those of the reference's configuration class.
struct Config {
  std::int64_t width = 1536;
  std::int64_t layers = 47;
  std::int64_t heads = 16;
  double mlp_ratio = 8960.0 / 1536;
  ops::Activation hidden_act = ops::Activation::kQuickGelu;
  double layer_norm_eps = 1e-5;
  double rope_theta = 10000.0;
  bool has_layer_scales = true;          ///< unless ls_init_value is null
  bool projector_bias = false;           ///< outside of vision_config
  std::int64_t text_hidden_size = 4096;  ///< columns of a row: text_config.hidden_size
  /// The whole image: image_size and patch_size. Two convolutions have stride 2.
  common::SquareView view{.side_px = 728, .patch_px = 14, .stride = 4};

  [[nodiscard]] std::int64_t head_dim() const { return width / heads; }
  [[nodiscard]] std::int64_t mlp_width() const {
    return static_cast<std::int64_t>(static_cast<double>(width) * mlp_ratio);
  }
};

/// Reads and validates vision_config and the width of the language model.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have. Source: docs/reference/step3p7.md, "Configuration".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

/// Requires patches that two convolutions of stride 2 divide.
/// @param path of the key that the side is from. @throws Error(kUnsupported) for others.
void check_view(const common::SquareView& view, const std::string& path);

}  // namespace fovea::step3p7
