#include "core/stopwatch.h"

#include <gtest/gtest.h>

namespace fovea {
namespace {

using std::chrono::hours;

TEST(Stopwatch, CountsFromTheMomentItIsGiven) {
  const Stopwatch watch(Stopwatch::Clock::now() - hours(1));
  EXPECT_GE(watch.elapsed_ms(), 3.6e6);
  EXPECT_GE(watch.elapsed_seconds(), 3600);
  EXPECT_LT(watch.elapsed_seconds(), 3.6e6);  // not milliseconds
}

TEST(Stopwatch, StartsAtOnceByItself) { EXPECT_GE(Stopwatch().elapsed_ms(), 0); }

TEST(Stopwatch, IsNegativeBeforeItsStart) {
  EXPECT_LT(Stopwatch(Stopwatch::Clock::now() + hours(1)).elapsed_ms(), 0);
}

}  // namespace
}  // namespace fovea
