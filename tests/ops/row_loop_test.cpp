// Loops over live rows on the CPU.
#include "ops/cpu/rowwise/row_loop.h"

#include <gtest/gtest.h>

#include <mutex>
#include <vector>

#include "support/expect_error.h"

namespace fovea::test {
namespace {

TEST(RowLoop, CoversEveryRowOnce) {
  ThreadPool pool(3);
  for (const std::int64_t rows : {0, 1, 7, 1000}) {
    for (const std::int64_t floats : {std::int64_t{1}, std::int64_t{700}, cpu::kRowLoopGrain * 2}) {
      std::vector<int> visits(static_cast<std::size_t>(rows), 0);
      std::mutex mutex;
      cpu::for_row_ranges(pool, rows, floats, [&](std::int64_t first, std::int64_t last) {
        const std::scoped_lock lock(mutex);
        for (std::int64_t row = first; row < last; ++row) ++visits[static_cast<std::size_t>(row)];
      });
      EXPECT_EQ(visits, std::vector<int>(static_cast<std::size_t>(rows), 1));
    }
  }
}

TEST(RowLoop, GivesATaskNoMoreThanItsGrain) {
  ThreadPool pool(1);
  constexpr std::int64_t kFloats = 100;
  cpu::for_row_ranges(pool, 1000, kFloats, [&](std::int64_t first, std::int64_t last) {
    EXPECT_LE((last - first) * kFloats, cpu::kRowLoopGrain);
  });
}

TEST(CountLive, IsTheCountOrTheCapacity) {
  const std::int32_t count = 3;
  EXPECT_EQ(cpu::count_live({&count}, 5), 3);
  EXPECT_EQ(cpu::count_live({&count}, 3), 3);
  EXPECT_EQ(cpu::count_live({}, 5), 5);
}

TEST(CountLive, RefusesCountsThatTheCapacityDoesNotAllow) {
  for (const std::int32_t count : {-1, 6}) {
    expect_error(ErrorCode::kInternal, "live count is ",
                 [&] { (void)cpu::count_live({&count}, 5); });
  }
}

}  // namespace
}  // namespace fovea::test
