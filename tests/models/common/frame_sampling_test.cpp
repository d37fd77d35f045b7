// Evenly spaced frames.
#include "models/common/frame_sampling.h"

#include <gtest/gtest.h>

namespace fovea::common {
namespace {

using Indices = std::vector<std::int64_t>;

TEST(SpreadFrames, GoFromTheFirstToTheLastAndRoundDown) {
  EXPECT_EQ(spread_frames(0, 99, 8), (Indices{0, 14, 28, 42, 56, 70, 84, 99}));
  EXPECT_EQ(spread_frames(3, 5, 2), (Indices{3, 5}));
  EXPECT_EQ(spread_frames(3, 5, 1), Indices{3});
  EXPECT_EQ(spread_frames(0, 1, 4), (Indices{0, 0, 0, 1}));
}

}  // namespace
}  // namespace fovea::common
