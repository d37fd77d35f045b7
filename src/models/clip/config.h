#pragma once

#include <cstdint>
#include <string>

#include "checkpoint/hf_config.h"
#include "models/common/views/clip.h"

namespace fovea::clip {

/// The fields of config.json that the tower and its vector need.
struct Config {
  common::ClipConfig tower;
  std::string tower_name = "vision_model.";  ///< begins the names of the tower's tensors; empty
                                             ///< where nothing else is in the model
  std::int64_t projection_dim = 0;  ///< columns of a vector behind visual_projection; 0: the model
                                    ///< has none

  /// Columns of a vector.
  [[nodiscard]] std::int64_t vector_width() const {
    return projection_dim > 0 ? projection_dim : tower.hidden_size;
  }
};

/// Reads and validates config.json, of a whole model or of its vision part alone.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have. Source: docs/reference/retrieval.md, "CLIP".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

}  // namespace fovea::clip
