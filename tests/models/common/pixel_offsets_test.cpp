// How many bytes of pixels a sub-batch may have.
#include "models/common/pixel_offsets.h"

#include <gtest/gtest.h>

#include "support/expect_error.h"

namespace fovea::common {
namespace {

TEST(PixelOffsets, ReachTheLargestInt32) {
  constexpr std::int64_t kMost = 2147483647;
  EXPECT_NO_THROW(check_pixel_offsets(kMost, 1));
  test::expect_error(ErrorCode::kInvalidArgument,
                     "sub-batch of 7 items: expected at most 2147483647 bytes of resized pixels, "
                     "got 2147483648",
                     [] { check_pixel_offsets(kMost + 1, 7); });
}

}  // namespace
}  // namespace fovea::common
