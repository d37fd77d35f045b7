#pragma once

#include <cstdint>

#include "checkpoint/hf_config.h"
#include "models/common/geometry.h"
#include "models/common/views/siglip.h"

namespace fovea::minicpmv4_6 {

/// The fields of config.json that the tower needs. Defaults are those of the reference's
/// configuration classes.
struct Config {
  /// Its view is that of the table of positions, and its grid is that of the table.
  common::SiglipConfig tower;
  std::int64_t insert_layer_id = 6;   ///< behind this layer windows of patches become one row each
  std::int64_t text_hidden_size = 0;  ///< text_config.hidden_size: columns of a row
  /// Patches of a row: windows of window x window, of which the projector joins as many.
  common::GridGeometry grid{.patch_size = 16, .spatial_merge_size = 4, .temporal_patch_size = 1};

  static constexpr std::int64_t kWindow = 2;                ///< patches a side, and rows a side
  static constexpr std::int64_t kArea = kWindow * kWindow;  ///< rows that become one, both times
};

/// Reads and validates config.json.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have. Source: docs/reference/minicpmv4_6.md, "Configuration".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

}  // namespace fovea::minicpmv4_6
