#pragma once

#include <cstdint>
#include <initializer_list>

#include "fovea/tower/models/item_processor.h"
#include "models/common/views/geometry.h"
#include "models/common/views/tiles.h"

namespace fovea::common {

/// Equal views of an item.
struct ViewCount {
  const SquareView& view;
  std::int64_t count = 1;
};

/// An image with the views that it has on each path: they are its units, its rows are all their
/// tokens, plan.grid is (1, tile rows, tile columns). The resized and the target size are left to
/// the caller, and so are further rows.
[[nodiscard]] ItemPlan plan_views(std::int64_t width_px, std::int64_t height_px, Tiling tiling,
                                  std::initializer_list<ViewCount> paths);

/// An image with one path, resized to tiles of its size, which is its target, too. @param views
/// tiles and a thumbnail, if any.
[[nodiscard]] ItemPlan plan_tiles(std::int64_t width_px, std::int64_t height_px, Tiling tiling,
                                  const ViewCount& views);

}  // namespace fovea::common
