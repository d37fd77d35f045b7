// Which patches become which token.
#include "models/molmo2/pooling.h"

#include <algorithm>

namespace fovea::molmo2 {

namespace {

std::int64_t windows_of(std::int64_t side, std::int64_t window) {
  return (side + window - 1) / window;
}

/// Calls visit(index) for the patches of window `number` on an axis. What is missing for whole
/// windows is missing on both sides, one more behind.
template <class Visit>
void for_each_in_window(std::int64_t number, std::int64_t window, std::int64_t side,
                        const Visit& visit) {
  const std::int64_t missing = windows_of(side, window) * window - side;
  const std::int64_t begin = number * window - missing / 2;
  for (std::int64_t i = std::max<std::int64_t>(begin, 0); i < std::min(begin + window, side); ++i) {
    visit(i);
  }
}

/// Adds the tokens of a grid. @param patch_at number of the patch at (y, x).
template <class PatchAt>
void add_grid(std::int64_t rows, std::int64_t cols, const PoolingSize& pooling,
              const PatchAt& patch_at, TokenPatches& to) {
  for (std::int64_t r = 0; r < windows_of(rows, pooling.rows); ++r) {
    for (std::int64_t c = 0; c < windows_of(cols, pooling.cols); ++c) {
      for_each_in_window(r, pooling.rows, rows, [&](std::int64_t y) {
        for_each_in_window(c, pooling.cols, cols,
                           [&](std::int64_t x) { to.patches.push_back(patch_at(y, x)); });
      });
      to.offsets.push_back(std::ssize(to.patches));
    }
  }
}

/// A patch of a row or column of overlapping crops.
struct Place {
  std::int64_t crop;
  std::int64_t within;
};

Place place_of(std::int64_t index, std::int64_t crops, const Overlap& overlap) {
  const std::int64_t crop =
      std::clamp<std::int64_t>((index - overlap.left) / overlap.window(), 0, crops - 1);
  return {crop, index - crop * overlap.window()};
}

}  // namespace

std::int64_t pooled_tokens(common::Tiling tiling, const Overlap& overlap,
                           const PoolingSize& pooling) {
  return windows_of(overlap.side(tiling.rows), pooling.rows) *
         windows_of(overlap.side(tiling.cols), pooling.cols);
}

void add_crops(std::int64_t first, common::Tiling tiling, const Overlap& overlap,
               const PoolingSize& pooling, TokenPatches& to) {
  const auto patch_at = [&](std::int64_t y, std::int64_t x) {
    const Place row = place_of(y, tiling.rows, overlap);
    const Place col = place_of(x, tiling.cols, overlap);
    const std::int64_t crop = row.crop * tiling.cols + col.crop;
    return first + (crop * overlap.crop + row.within) * overlap.crop + col.within;
  };
  add_grid(overlap.side(tiling.rows), overlap.side(tiling.cols), pooling, patch_at, to);
}

}  // namespace fovea::molmo2
