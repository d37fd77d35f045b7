// Which patches become which token: windows at edges, and across the borders of crops.
#include "models/molmo2/pooling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace fovea::molmo2 {
namespace {

std::vector<std::int64_t> token(const TokenPatches& tokens, std::size_t index) {
  const auto patches = tokens.patches.begin();
  return {patches + tokens.offsets[index], patches + tokens.offsets[index + 1]};
}

using Patches = std::vector<std::int64_t>;

TEST(Molmo2Pooling, WindowsThatOverhangHaveFewerPatches) {
  TokenPatches tokens;
  add_crops(100, {}, {.crop = 3, .left = 1, .right = 1}, {2, 2},
            tokens);  // one patch is missing, behind
  ASSERT_EQ(tokens.count(), pooled_tokens({}, {.crop = 3, .left = 1, .right = 1}, {2, 2}));
  EXPECT_EQ(token(tokens, 0), (Patches{100, 101, 103, 104}));
  EXPECT_EQ(token(tokens, 1), (Patches{102, 105}));
  EXPECT_EQ(token(tokens, 3), (Patches{108}));
}

TEST(Molmo2Pooling, WhatIsMissingIsMissingOnBothSides) {
  TokenPatches tokens;
  add_crops(0, {}, {.crop = 4, .left = 1, .right = 1}, {3, 3},
            tokens);  // two are missing, one of them before
  ASSERT_EQ(tokens.count(), 4);
  EXPECT_EQ(token(tokens, 0), (Patches{0, 1, 4, 5}));
  EXPECT_EQ(token(tokens, 3), (Patches{10, 11, 14, 15}));
}

TEST(Molmo2Pooling, OneCropIsAView) {
  TokenPatches tokens;
  add_crops(7, {}, {.crop = 5, .left = 1, .right = 2}, {1, 1}, tokens);
  Patches all(25);
  std::iota(all.begin(), all.end(), 7);
  EXPECT_EQ(tokens.patches, all);
}

TEST(Molmo2Pooling, EveryPatchOfAnImageIsTakenOnceFromOneCrop) {
  const Overlap overlap{.crop = 5, .left = 1, .right = 1};
  TokenPatches tokens;
  add_crops(0, {.cols = 2, .rows = 1}, overlap, {1, 1}, tokens);
  // 8 columns: 0 to 3 of the first crop, then 1 to 4 of the second, whose column 0 is the
  // first's 3.
  EXPECT_EQ(token(tokens, 3), (Patches{3}));
  EXPECT_EQ(token(tokens, 4), (Patches{25 + 1}));
  EXPECT_EQ(token(tokens, 7), (Patches{25 + 4}));
  EXPECT_EQ(tokens.patches.size(), 5u * 8u);
  Patches sorted = tokens.patches;
  std::ranges::sort(sorted);
  EXPECT_EQ(std::ranges::adjacent_find(sorted), sorted.end());
}

TEST(Molmo2Pooling, WindowsGoAcrossTheBordersOfCrops) {
  TokenPatches tokens;
  add_crops(0, {.cols = 2, .rows = 1}, {.crop = 5, .left = 2, .right = 0}, {1, 2}, tokens);
  // 8 columns, of which the first 5 are the first crop's.
  EXPECT_EQ(token(tokens, 2), (Patches{4, 25 + 2}));
}

}  // namespace
}  // namespace fovea::molmo2
