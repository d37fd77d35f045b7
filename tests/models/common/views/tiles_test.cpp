// The choice of tiles, and cutting an image into them.
#include "models/common/views/tiles.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace fovea::common {
namespace {

TEST(NearestTiling, HasTheNearestAspectRatio) {
  struct Case {
    std::int64_t width, height, cols, rows;
  };
  for (const Case& c : {Case{641, 480, 3, 2}, Case{480, 641, 2, 3}, Case{1920, 1080, 2, 1},
                        Case{3000, 500, 6, 1}, Case{400, 2400, 1, 6}, Case{1600, 640, 3, 1}}) {
    EXPECT_EQ(nearest_tiling(c.width, c.height, 640, 2, 6),
              (Tiling{.cols = c.cols, .rows = c.rows}))
        << c.width << "x" << c.height;
  }
}

TEST(NearestTiling, OfEquallyNearOnesTakesTheLargerIfTheImageHasHalfItsPixels) {
  // 2 x 2 and 3 x 3 tiles are both square; half of 9 tiles of 640 x 640 pixels are 1357.6 a side.
  EXPECT_EQ(nearest_tiling(1357, 1357, 640, 2, 9).count(), 4);
  EXPECT_EQ(nearest_tiling(1358, 1358, 640, 2, 9).count(), 9);
}

TEST(NearestTiling, KeepsToTheNumbersOfTilesAllowed) {
  EXPECT_EQ(nearest_tiling(100, 100, 640, 2, 3).count(), 2) << "1 x 2 and 2 x 1: no square one";
  EXPECT_EQ(nearest_tiling(100, 100, 640, 1, 6).count(), 1);
  EXPECT_EQ(nearest_tiling(9000, 100, 640, 2, 6).cols, 6);
}

TEST(CutTiles, TakesTilesRowByRowOfTheImage) {
  // Pixels of 3 bytes that count up; 3 x 2 tiles of 2 x 2 pixels: rows of 6 pixels.
  std::vector<std::uint8_t> image(3 * 2 * 2 * 2 * 3);
  std::iota(image.begin(), image.end(), std::uint8_t{0});
  std::vector<std::uint8_t> tiles(image.size());
  cut_tiles({image.data(), 6, 4}, {.cols = 3, .rows = 2}, 2, tiles);
  const auto tile = [&](std::size_t index) {
    return std::vector<std::uint8_t>(tiles.begin() + static_cast<std::ptrdiff_t>(12 * index),
                                     tiles.begin() + static_cast<std::ptrdiff_t>(12 * index + 12));
  };
  using Bytes = std::vector<std::uint8_t>;
  EXPECT_EQ(tile(0), (Bytes{0, 1, 2, 3, 4, 5, 18, 19, 20, 21, 22, 23}));
  EXPECT_EQ(tile(2), (Bytes{12, 13, 14, 15, 16, 17, 30, 31, 32, 33, 34, 35}));
  EXPECT_EQ(tile(3), (Bytes{36, 37, 38, 39, 40, 41, 54, 55, 56, 57, 58, 59}));
}

TEST(CutTiles, AreBlackWhereTheImageDoesNotReach) {
  const std::vector<std::uint8_t> image(3 * 1 * 3, 5);  // 3 wide, 1 high
  std::vector<std::uint8_t> tiles(4 * 2 * 2 * 3, 9);
  cut_tiles({image.data(), 3, 1}, {.cols = 2, .rows = 2}, 2, tiles);
  std::vector<int> reds;
  for (std::size_t i = 0; i < tiles.size(); i += 3) reds.push_back(tiles[i]);
  EXPECT_EQ(reds, (std::vector<int>{5, 5, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

TEST(CutSquare, BeginsAnywhereInTheImage) {
  std::vector<std::uint8_t> image(4 * 3 * 3);  // 4 wide, 3 high; a pixel holds its number
  for (std::size_t i = 0; i < image.size(); ++i) image[i] = static_cast<std::uint8_t>(i / 3);
  std::vector<std::uint8_t> square(2 * 2 * 3, 99);
  cut_square({image.data(), 4, 3}, 3, 1, 2, square);
  EXPECT_EQ(square, (std::vector<std::uint8_t>{7, 7, 7, 0, 0, 0, 11, 11, 11, 0, 0, 0}));
}

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
