// Sizes and counts of items that are made of square views.
#include "models/common/views/plan.h"

#include <gtest/gtest.h>

namespace fovea::common {
namespace {

const SquareView kWhole{.side_px = 16, .patch_px = 4, .stride = 2};             // 4 tokens
const SquareView kTile{.side_px = 8, .patch_px = 4, .stride = 2, .planes = 3};  // 1 token

TEST(PlanViews, SumsOverPaths) {
  const ItemPlan plan = plan_views(70, 30, {.cols = 3, .rows = 2}, {{kWhole, 1}, {kTile, 6}});
  EXPECT_EQ(plan.source_width_px, 70);
  EXPECT_EQ(plan.source_height_px, 30);
  EXPECT_EQ(plan.grid, (std::array<std::int64_t, 3>{1, 2, 3}));
  EXPECT_EQ(plan.pixel_bytes, 16u * 16 * 3 + 6 * 3 * 8 * 8 * 3);
  EXPECT_EQ(plan.spec.input_rows, 16 + 6 * 4);
  EXPECT_EQ(plan.spec.num_seqs, 1);
  EXPECT_EQ(plan.spec.path_tokens[0], 4);
  EXPECT_EQ(plan.spec.path_tokens[1], 6);
  EXPECT_EQ(plan.spec.out_rows, 10);
  EXPECT_EQ(units_of(plan.spec), (std::vector<ItemUnits>{{1, 16, 4}, {6, 4, 1}}));
}

TEST(PlanTiles, ResizeToWholeTiles) {
  const ItemPlan plan = plan_tiles(70, 30, {.cols = 3, .rows = 2}, {kWhole, 7});
  EXPECT_EQ(plan.resized_width_px, 48);
  EXPECT_EQ(plan.resized_height_px, 32);
  EXPECT_EQ(plan.spec.out_rows, 28) << "six tiles and a thumbnail";
}

}  // namespace
}  // namespace fovea::common
