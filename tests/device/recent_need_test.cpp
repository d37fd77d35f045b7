#include "device/recent_need.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

TEST(RecentNeed, ForgetsWhatWasNeeded32RunsAgo) {
  RecentNeed need;
  need.add(100);
  for (int i = 0; i < 31; ++i) need.add(10);
  EXPECT_EQ(need.largest(), 100u);
  need.add(10);
  EXPECT_EQ(need.largest(), 10u);
}

TEST(RecentNeed, SaysNothingBefore32Runs) {
  RecentNeed need;
  for (int i = 0; i < 31; ++i) need.add(1);
  EXPECT_FALSE(need.is_far_below(1000));
  need.add(1);
  EXPECT_TRUE(need.is_far_below(1000));
}

TEST(RecentNeed, HalfOfTheMemoryIsNotFarBelow) {
  RecentNeed need;
  for (int i = 0; i < 32; ++i) need.add(50);
  EXPECT_FALSE(need.is_far_below(100));
  EXPECT_TRUE(need.is_far_below(102));
  EXPECT_FALSE(need.is_far_below(0));
}

}  // namespace
}  // namespace fovea
