#include "serve/http/rate_floor.h"

#include <gtest/gtest.h>

namespace fovea::serve {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Clock::time_point kStart{};

/// 100 bytes per second over any 10 s, from the fifth on.
RateFloor floor_of_100() { return {100, seconds(5), seconds(10), kStart}; }

TEST(RateFloor, WaitsForGraceAndAWindow) {
  RateFloor floor = floor_of_100();
  EXPECT_EQ(floor.next_check(), kStart + seconds(15));
  EXPECT_FALSE(floor.is_broken(kStart + milliseconds(14'999)));
  EXPECT_TRUE(floor.is_broken(kStart + seconds(15)));
}

TEST(RateFloor, LetsSteadyClientsGoOn) {
  RateFloor floor = floor_of_100();
  for (int second = 0; second < 100; ++second) {
    floor.add(100, kStart + seconds(second));
    EXPECT_FALSE(floor.is_broken(kStart + seconds(second))) << second;
  }
}

TEST(RateFloor, CutsTrickles) {
  RateFloor floor = floor_of_100();
  int second = 0;
  for (; second < 100 && !floor.is_broken(kStart + seconds(second)); ++second) {
    floor.add(99, kStart + seconds(second));
  }
  EXPECT_EQ(second, 15);
}

TEST(RateFloor, CutsAClientThatGrowsSlow) {
  RateFloor floor = floor_of_100();
  floor.add(1'000'000, kStart + seconds(20));
  EXPECT_TRUE(floor.is_broken(kStart + seconds(20)));
  RateFloor other = floor_of_100();
  other.add(1'000'000, kStart + seconds(6));
  EXPECT_FALSE(other.is_broken(kStart + milliseconds(16'900)));
  EXPECT_TRUE(other.is_broken(kStart + seconds(17)));
}

TEST(RateFloor, ForgivesAPauseWithinAWindow) {
  RateFloor floor = floor_of_100();
  for (int second = 0; second < 100; second += 8) {
    floor.add(2'000, kStart + seconds(second));
    EXPECT_FALSE(floor.is_broken(kStart + seconds(second))) << second;
  }
}

TEST(RateFloor, StaysBroken) {
  RateFloor floor = floor_of_100();
  EXPECT_TRUE(floor.is_broken(kStart + seconds(15)));
  floor.add(1'000'000, kStart + seconds(16));
  EXPECT_TRUE(floor.is_broken(kStart + seconds(16)));
}

TEST(RateFloor, TakesAnyRateForZero) {
  RateFloor floor(0, seconds(5), seconds(10), kStart);
  EXPECT_EQ(floor.next_check(), Clock::time_point::max());
  EXPECT_FALSE(floor.is_broken(kStart + std::chrono::hours(100)));
}

TEST(RateFloor, TakesWindowsTooShortToCount) {
  RateFloor floor(1'000, milliseconds(0), milliseconds(0), kStart);
  EXPECT_FALSE(floor.is_broken(kStart + seconds(1)));
}

}  // namespace
}  // namespace fovea::serve
