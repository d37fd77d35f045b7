#include "report/axis.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace fovea::cli {
namespace {

using ::testing::ElementsAre;

TEST(Axis, MapsItsEndsToItsPixels) {
  const Axis down(Scale::kLinear, 0, 10, 300, 100);
  EXPECT_DOUBLE_EQ(down(0), 300);
  EXPECT_DOUBLE_EQ(down(10), 100);
  EXPECT_DOUBLE_EQ(down(2.5), 250);
}

TEST(Axis, LogarithmicStepsAreRatios) {
  const Axis axis(Scale::kLog, 1, 100, 0, 200);
  EXPECT_DOUBLE_EQ(axis(10), 100);
}

TEST(Axis, OneValueLiesAtTheBeginning) {
  EXPECT_DOUBLE_EQ(Axis(Scale::kLinear, 5, 5, 80, 730)(5), 80);
}

TEST(Axis, LinearTicksCoverTheRangeInRoundSteps) {
  EXPECT_THAT(linear_ticks(5, 5), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(linear_ticks(4.5, 6), ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(linear_ticks(0, 6).front(), 0);
  EXPECT_GE(linear_ticks(1234, 6).back(), 1234);
}

TEST(Axis, LogTicksEncloseTheRange) {
  EXPECT_THAT(log_ticks(1.2, 30), ElementsAre(1, 2, 5, 10, 20, 50));
  EXPECT_THAT(log_ticks(10, 100), ElementsAre(10, 20, 50, 100));
  EXPECT_THAT(log_ticks(3, 4), ElementsAre(2, 5));
}

}  // namespace
}  // namespace fovea::cli
