// Which patches become which token.
#include "models/molmo2/pooling.h"

#include <algorithm>

namespace fovea::molmo2 {

namespace {

std::int64_t windows_of(std::int64_t side, std::int64_t window) {
  return (side + window - 1) / window;
}

/// The addends of the rows, or columns, of patches in the numbers of their patches, window by
/// window. Windows overhang on both sides, by one patch more behind.
/// @param next_crop patches from one crop to the next. @param next from one row or column.
std::vector<std::vector<std::int64_t>> axis_of(std::int64_t crops, const Overlap& overlap,
                                               std::int64_t window, std::int64_t next_crop,
                                               std::int64_t next) {
  const std::int64_t side = overlap.side(crops);
  const std::int64_t count = windows_of(side, window);
  const std::int64_t before = (count * window - side) / 2;
  std::vector<std::vector<std::int64_t>> windows(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < side; ++i) {
    const std::int64_t crop =
        std::clamp<std::int64_t>((i - overlap.left) / overlap.window(), 0, crops - 1);
    windows[static_cast<std::size_t>((i + before) / window)].push_back(
        crop * next_crop + (i - crop * overlap.window()) * next);
  }
  return windows;
}

}  // namespace

void add_crops(std::int64_t first, common::Tiling tiling, const Overlap& overlap,
               const PoolingSize& pooling, TokenPatches& to) {
  const std::int64_t crop = overlap.crop * overlap.crop;
  const auto rows = axis_of(tiling.rows, overlap, pooling.rows, tiling.cols * crop, overlap.crop);
  const auto cols = axis_of(tiling.cols, overlap, pooling.cols, crop, 1);
  for (const std::vector<std::int64_t>& down : rows) {
    for (const std::vector<std::int64_t>& across : cols) {
      for (const std::int64_t y : down) {
        for (const std::int64_t x : across) to.patches.push_back(first + y + x);
      }
      to.offsets.push_back(std::ssize(to.patches));
    }
  }
}

std::int64_t pooled_tokens(common::Tiling tiling, const Overlap& overlap,
                           const PoolingSize& pooling) {
  return windows_of(overlap.side(tiling.rows), pooling.rows) *
         windows_of(overlap.side(tiling.cols), pooling.cols);
}

}  // namespace fovea::molmo2
