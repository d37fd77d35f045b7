#include "core/short_turn.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>

namespace fovea {
namespace {

/// The slice of this thread in nanoseconds: `sched_runtime` of sched_getattr(2), at byte 24. 0
/// before Linux 6.12.
std::uint64_t slice_ns() {
  std::array<std::uint8_t, 48> attributes{};
  EXPECT_EQ(syscall(SYS_sched_getattr, 0, attributes.data(), attributes.size(), 0U), 0);
  std::uint64_t slice = 0;
  std::memcpy(&slice, attributes.data() + 24, sizeof(slice));
  return slice;
}

TEST(ShortTurn, LastsAsLongAsItLives) {
  const std::uint64_t before = slice_ns();
  if (before == 0) GTEST_SKIP() << "this kernel has no slices of threads";
  {
    const ShortTurn turn;
    EXPECT_EQ(slice_ns(), 100'000U);
    {
      const ShortTurn inner;
      EXPECT_EQ(slice_ns(), 100'000U);
    }
    EXPECT_EQ(slice_ns(), 100'000U);
  }
  EXPECT_EQ(slice_ns(), before);
}

}  // namespace
}  // namespace fovea
