#pragma once

#include <cstdint>

#include "checkpoint/hf_config.h"
#include "fovea/tower/ops/linear.h"
#include "models/common/geometry.h"

namespace fovea::ernie4_5_vl {

/// The vision tower's fields of config.json, named as there (vision_config.*), and what it says of
/// the language model. Defaults are those of the reference's configuration class.
struct Config {
  std::int64_t depth = 32;
  std::int64_t hidden_size = 1280;
  std::int64_t intermediate_size = 5120;
  std::int64_t num_heads = 16;
  double rms_norm_eps = 1e-6;  ///< of the layer norms of tower and resampler
  double rope_theta = 10000.0;
  ops::Activation hidden_act = ops::Activation::kQuickGelu;  ///< of the blocks; else erf
  std::int64_t text_hidden_size = 2560;                      ///< columns of a row
  double text_rms_norm_eps = 1e-5;                           ///< of the last norm
  common::GridGeometry grid{
      .patch_size = 14, .temporal_patch_size = 2, .frames = common::FrameUse::kApart};

  [[nodiscard]] std::int64_t head_dim() const { return hidden_size / num_heads; }
  /// Columns of the rows that the resampler joins in space, and then in time.
  [[nodiscard]] std::int64_t joined_width() const { return grid.merge_area() * hidden_size; }
};

/// Reads and validates vision_config, and the width of the language model, which published files
/// have outside of text_config.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have. Source: docs/reference/ernie4_5_vl.md, "Configuration".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

}  // namespace fovea::ernie4_5_vl
