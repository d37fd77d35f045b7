#include "report/stopwatch.h"

#include <gtest/gtest.h>

namespace fovea::cli {
namespace {

using std::chrono::hours;

TEST(Stopwatch, CountsFromTheMomentItIsGiven) {
  const Stopwatch watch(Stopwatch::Clock::now() - hours(1));
  EXPECT_GE(watch.ms(), 3.6e6);
  EXPECT_GE(watch.seconds(), 3600);
  EXPECT_LT(watch.seconds(), 3.6e6);  // not milliseconds
}

TEST(Stopwatch, StartsAtOnceByItself) { EXPECT_GE(Stopwatch().ms(), 0); }

TEST(Stopwatch, IsNegativeBeforeItsStart) {
  EXPECT_LT(Stopwatch(Stopwatch::Clock::now() + hours(1)).ms(), 0);
}

}  // namespace
}  // namespace fovea::cli
