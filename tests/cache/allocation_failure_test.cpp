// The bookkeeping of a cache while memory runs out: a call that fails has changed nothing.
#include <gtest/gtest.h>

#include <functional>
#include <optional>
#include <string>

#include "cache/requests.h"
#include "fovea/error.h"
#include "support/allocations.h"

namespace fovea {
namespace {

using test::FailingAllocation;
using test::state_of;

/// Calls with its first allocation failing, its second, and so on, until it works.
void expect_all_or_nothing(EncoderCache& cache, const std::function<void()>& call) {
  const auto before = state_of(cache);
  for (std::int64_t nth = 1;; ++nth) {
    std::optional<Error> error;
    {
      const FailingAllocation failing(nth, FailingAllocation::Lasts::kOnce);
      try {
        call();
      } catch (const Error& caught) {
        error = caught;
      }
    }
    if (!error) return;
    EXPECT_EQ(error->code(), ErrorCode::kOutOfMemory);
    ASSERT_EQ(state_of(cache), before) << nth;
  }
}

TEST(EncoderCacheWithoutMemory, ChangesNothing) {
  const std::string long_text(100, 'x');  // longer than a string holds without memory
  const CacheRequest first = test::request_of(long_text + "1", long_text + "a", 4);
  const CacheRequest second = test::request_of(long_text + "2", long_text + "b", 4);
  EncoderCache cache(4);
  expect_all_or_nothing(cache, [&] { cache.allocate(first, 0); });
  expect_all_or_nothing(cache, [&] { cache.release(first, 0); });
  EXPECT_EQ(cache.num_freeable(), 4);
  expect_all_or_nothing(cache, [&] { EXPECT_TRUE(cache.lookup(first, 0)); });
  EXPECT_EQ(cache.num_freeable(), 0);
  expect_all_or_nothing(cache, [&] { cache.release_all(first); });
  expect_all_or_nothing(cache, [&] { EXPECT_TRUE(cache.make_room(second, 0, 4)); });
  EXPECT_EQ(cache.num_free(), 4);
  EXPECT_EQ(cache.drain_evicted(), std::vector<std::string>{long_text + "a"});
}

}  // namespace
}  // namespace fovea
