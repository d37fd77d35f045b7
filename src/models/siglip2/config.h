#pragma once

#include <cstdint>

#include "checkpoint/hf_config.h"
#include "models/common/geometry.h"
#include "models/common/views/siglip.h"

namespace fovea::siglip2 {

/// The fields of vision_config, named as there.
struct Config {
  common::SiglipConfig blocks;  ///< but its view, which there is none of
  common::GridGeometry grid{.patch_size = 16, .spatial_merge_size = 1, .temporal_patch_size = 1};
  std::int64_t num_patches = 256;  ///< entries of the table of positions, a square
  bool vision_use_head = true;

  [[nodiscard]] std::int64_t position_side() const;
};

/// Reads and validates config.json, of a whole model or of its vision part alone.
/// @throws Error(kCorruptData) naming the key for wrong types, Error(kUnsupported) for values this
/// tower does not have. Source: docs/reference/retrieval.md, "SigLIP 2".
[[nodiscard]] Config parse_config(const checkpoint::HfConfig& files);

}  // namespace fovea::siglip2
