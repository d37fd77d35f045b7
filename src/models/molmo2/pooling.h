#pragma once

#include <cstdint>
#include <vector>

#include "models/common/views/tiles.h"

namespace fovea::molmo2 {

/// Windows of patches that become one token each.
struct PoolingSize {
  std::int64_t rows = 2;
  std::int64_t cols = 2;

  [[nodiscard]] std::int64_t area() const { return rows * cols; }
};

/// How crops of an image overlap, in patches of a side.
struct Overlap {
  std::int64_t crop = 27;  ///< of a crop
  std::int64_t left = 4;   ///< that a crop shares with the one before
  std::int64_t right = 4;  ///< and with the one behind

  [[nodiscard]] std::int64_t margin() const { return left + right; }
  /// From one crop to the next.
  [[nodiscard]] std::int64_t window() const { return crop - margin(); }
  /// The side of so many crops in a row.
  [[nodiscard]] std::int64_t side(std::int64_t crops) const { return crops * window() + margin(); }
};

/// The patches of every token, one token after the other.
struct TokenPatches {
  std::vector<std::int64_t> patches;     ///< counted from the first of the item
  std::vector<std::int64_t> offsets{0};  ///< of each token in `patches`, and their end

  [[nodiscard]] std::int64_t count() const { return std::ssize(offsets) - 1; }
};

/// Adds the tokens of an image that is cut into overlapping crops, or is one: each of its patches
/// is taken from one crop, and windows go across their borders. @param first patch of the first
/// crop. Source: docs/reference/molmo2.md, "Pooling".
void add_crops(std::int64_t first, common::Tiling tiling, const Overlap& overlap,
               const PoolingSize& pooling, TokenPatches& to);

/// How many these are.
[[nodiscard]] std::int64_t pooled_tokens(common::Tiling tiling, const Overlap& overlap,
                                         const PoolingSize& pooling);

}  // namespace fovea::molmo2
