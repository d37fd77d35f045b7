// Sizes and counts of items that are made of square views.
#include "models/common/views/plan.h"

namespace fovea::common {

ItemPlan plan_views(std::int64_t width_px, std::int64_t height_px, Tiling tiling,
                    std::initializer_list<ViewCount> paths) {
  ItemPlan plan;
  plan.source_width_px = width_px;
  plan.source_height_px = height_px;
  plan.grid = {1, tiling.rows, tiling.cols};
  plan.spec.num_seqs = 1;  // sequences are views, whose number the capacity in tokens bounds
  std::size_t path = 0;
  for (const auto& [view, count] : paths) {
    plan.pixel_bytes += static_cast<std::size_t>(count) * view.pixel_bytes();
    plan.spec.units[path] = {count, view.patches(), view.tokens()};
    plan.spec.path_tokens[path] = count * view.tokens();
    plan.spec.input_rows += count * view.patches();
    plan.spec.out_rows += plan.spec.path_tokens[path++];
  }
  return plan;
}

ItemPlan plan_tiles(std::int64_t width_px, std::int64_t height_px, Tiling tiling,
                    const ViewCount& views) {
  ItemPlan plan = plan_views(width_px, height_px, tiling, {views});
  plan.resized_width_px = tiling.cols * views.view.side_px;
  plan.resized_height_px = tiling.rows * views.view.side_px;
  plan.target_width_px = plan.resized_width_px;
  plan.target_height_px = plan.resized_height_px;
  return plan;
}

}  // namespace fovea::common
