#pragma once

#include <cstdint>

namespace fovea::common {

/// How frames become patches, and patches become tokens.
struct GridGeometry {
  std::int64_t patch_size = 16;          ///< pixels a side
  std::int64_t spatial_merge_size = 2;   ///< patches a side of a token
  std::int64_t temporal_patch_size = 2;  ///< frames of a patch; still images repeat theirs

  /// Patches of a token.
  [[nodiscard]] std::int64_t merge_area() const { return spatial_merge_size * spatial_merge_size; }
  /// Values of a patch: channels x frames x height x width.
  [[nodiscard]] std::int64_t patch_dim() const {
    return 3 * temporal_patch_size * patch_size * patch_size;
  }
  /// Pixels a side of a token: resized sides are multiples of it.
  [[nodiscard]] std::int64_t resize_factor() const { return patch_size * spatial_merge_size; }
};

}  // namespace fovea::common
