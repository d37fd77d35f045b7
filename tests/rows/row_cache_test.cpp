// Who encodes an item, who gets its rows, and which memory they are in.
#include "rows/row_cache.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/interrupt.h"
#include "rows/tier_rows.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using test::TierRows;
using Turn = RowCache::Turn;

constexpr std::int64_t kUnit = 16;  // rows that take 256 bytes

class RowCacheTest : public ::testing::Test {
 protected:
  /// Sizes in units.
  [[nodiscard]] RowCache cache_of(std::int64_t device, std::int64_t host, int devices = 1) {
    std::vector<Device*> some{device_.get(), other_.get()};
    some.resize(static_cast<std::size_t>(devices));
    return {some, device * 256, host * 256};
  }
  /// Stores rows on the first device.
  void store(RowCache& cache, const std::string& key, std::int64_t units) {
    TierRows rows(units * kUnit, static_cast<float>(key.front()));
    test::store(cache, key, *device_, *queue_, rows.view());
  }
  /// The rows of the claim, which is to encode them.
  void store(RowCache::Claim& claim, char key, std::int64_t units) {
    TierRows rows(units * kUnit, static_cast<float>(key));
    claim.describe({});
    claim.store(*device_, *queue_, rows.view());
  }
  void expect_rows(const RowCache::Claim& claim, char key, std::int64_t units) {
    ASSERT_EQ(claim.turn(), Turn::kRead);
    TierRows out(units * kUnit, 0);
    test::copy(claim, *device_, *queue_, out.view());
    EXPECT_TRUE(out.are(static_cast<float>(key))) << key;
  }

  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(CpuIsa::kPortable, 1);
  std::unique_ptr<Device> device_ = make_cpu_device(1, *kernels_);
  std::unique_ptr<Device> other_ = make_cpu_device(1, *kernels_);
  std::unique_ptr<Stream> queue_ = device_->create_copy_stream();
};

TEST_F(RowCacheTest, ReadsWhatWasStored) {
  RowCache cache = cache_of(10, 0);
  store(cache, "a", 4);
  const RowCache::Claim claim = cache.claim("a");
  expect_rows(claim, 'a', 4);
  EXPECT_EQ(claim.facts().rows, 4 * kUnit);
  EXPECT_EQ(claim.facts().width, TierRows::kWidth);
  EXPECT_EQ(claim.facts().grid_thw, (std::array<std::int64_t, 3>{1, 2, 3}));
  EXPECT_TRUE(claim.facts().name.empty());
}

TEST_F(RowCacheTest, EvictsWhatWasAskedForLongestAgo) {
  RowCache cache = cache_of(10, 0);
  store(cache, "a", 4);
  store(cache, "b", 4);
  (void)cache.claim("a");
  store(cache, "c", 4);
  EXPECT_EQ(cache.claim("a").turn(), Turn::kRead);
  EXPECT_EQ(cache.claim("b").turn(), Turn::kEncode);
}

TEST_F(RowCacheTest, EvictsUntilThereIsAHoleThatIsLargeEnough) {
  RowCache cache = cache_of(9, 0);
  store(cache, "a", 3);
  store(cache, "b", 3);
  store(cache, "c", 3);
  (void)cache.claim("b");
  store(cache, "d", 6);  // "a" and "c" do not lie side by side
  expect_rows(cache.claim("d"), 'd', 6);
  EXPECT_EQ(cache.stats().items, 1);
}

TEST_F(RowCacheTest, NeverEvictsWhatSomebodyHasAClaimTo) {
  RowCache cache = cache_of(10, 0);
  store(cache, "a", 6);
  const RowCache::Claim held = cache.claim("a");
  store(cache, "b", 6);
  EXPECT_EQ(cache.stats().bypasses, 1);
  expect_rows(held, 'a', 6);
  EXPECT_EQ(cache.claim("b").turn(), Turn::kEncode);
}

TEST_F(RowCacheTest, AnItemThatFitsNowhereEvictsNothing) {
  RowCache cache = cache_of(10, 5);
  store(cache, "a", 4);
  store(cache, "b", 11);
  store(cache, "c", 0);
  EXPECT_EQ(cache.stats().bypasses, 2);
  EXPECT_EQ(cache.stats().items, 1);
  EXPECT_EQ(cache.stats().device.evictions, 0);
}

TEST_F(RowCacheTest, WhatLeavesTheDeviceGoesToTheHostAndThenForGood) {
  RowCache cache = cache_of(4, 8);
  for (const char* const key : {"a", "b", "c", "d"}) store(cache, key, 4);
  EncoderCacheStats stats = cache.stats();
  EXPECT_EQ(stats.device.items, 1);
  EXPECT_EQ(stats.host.items, 2);
  EXPECT_EQ(stats.device.evictions, 3);
  EXPECT_EQ(stats.host.evictions, 1);
  EXPECT_EQ(stats.evictions, 1);
  expect_rows(cache.claim("b"), 'b', 4);
  expect_rows(cache.claim("d"), 'd', 4);
  EXPECT_EQ(cache.claim("a").turn(), Turn::kEncode);
  stats = cache.stats();
  EXPECT_EQ(stats.queries, 7);
  EXPECT_EQ(stats.misses, 4);
  EXPECT_EQ(stats.device.hits, 1);
  EXPECT_EQ(stats.device.misses, 6);
  EXPECT_EQ(stats.host.hits, 1);
  EXPECT_EQ(stats.host.misses, 5);
  EXPECT_EQ(stats.capacity_bytes, 12 * 256);
  EXPECT_EQ(stats.bytes, 12 * 256);
}

TEST_F(RowCacheTest, WhatIsTooLargeForTheDeviceIsKeptOnTheHost) {
  RowCache cache = cache_of(2, 8);
  store(cache, "a", 5);
  const RowCache::Claim claim = cache.claim("a");
  EXPECT_EQ(claim.slot().device(), nullptr);
  expect_rows(claim, 'a', 5);
}

TEST_F(RowCacheTest, OfTheHostAloneCountsWhatBecomesOfEveryItem) {
  RowCache cache = cache_of(0, 10);
  store(cache, "a", 6);
  expect_rows(cache.claim("a"), 'a', 6);
  store(cache, "b", 5);
  store(cache, "c", 11);
  const EncoderCacheStats stats = cache.stats();
  EXPECT_EQ(stats.queries, 4);
  EXPECT_EQ(stats.hits, 1);
  EXPECT_EQ(stats.misses, 2);
  EXPECT_EQ(stats.bypasses, 1);
  EXPECT_EQ(stats.evictions, 1);
  EXPECT_EQ(stats.rows, 5 * kUnit);
  EXPECT_EQ(stats.bytes, 5 * 256);
  EXPECT_EQ(stats.freeable_bytes, 5 * 256);
  EXPECT_EQ(stats.host.capacity_bytes, 10 * 256);
  EXPECT_EQ(stats.host.items, 1);
  EXPECT_EQ(stats.host.hits, 1);
  EXPECT_EQ(stats.host.misses, 3);
  EXPECT_EQ(stats.host.evictions, 1);
  EXPECT_EQ(stats.device.capacity_bytes, 0);
  EXPECT_EQ(stats.device.misses, 0) << "there is no device to look on";
}

TEST_F(RowCacheTest, AnEntryLiesOnTheDeviceThatEncodedIt) {
  RowCache cache = cache_of(4, 0, 2);
  TierRows rows(kUnit, 7);
  test::store(cache, "a", *other_, *queue_, rows.view());
  EXPECT_EQ(cache.claim("a").slot().device(), other_.get());
  EXPECT_EQ(cache.stats().device.capacity_bytes, 8 * 256);
}

TEST_F(RowCacheTest, RowsThatComeInPartsAreThereAtTheEnd) {
  RowCache cache = cache_of(0, 10, 2);
  const std::unique_ptr<Stream> others = other_->create_copy_stream();
  TierRows first(kUnit, 'a');
  TierRows last(2 * kUnit, 'a');
  RowCache::Claim claim = cache.claim("a");
  EXPECT_TRUE(claim.stores_on_host());
  claim.describe({});
  claim.begin_store(*device_, 3 * kUnit, TierRows::kWidth, DType::kF32);
  claim.store_part(*other_, *others, last.view(), kUnit);
  EXPECT_EQ(cache.claim("a").turn(), Turn::kWait);
  claim.store_part(*device_, *queue_, first.view(), 0);
  claim.end_store();
  EXPECT_EQ(claim.use(), CacheUse::kMiss);
  const RowCache::Claim found = cache.claim("a");
  EXPECT_EQ(found.facts().rows, 3 * kUnit);
  expect_rows(found, 'a', 3);
}

TEST_F(RowCacheTest, RowsOfADeviceAreNotForSeveral) {
  RowCache cache = cache_of(1, 10, 2);
  EXPECT_FALSE(cache.claim("a").stores_on_host());
}

TEST_F(RowCacheTest, TwoWhoHoldRowsOfTheHostBringThemBackOnce) {
  RowCache cache = cache_of(4, 8);
  store(cache, "a", 4);
  store(cache, "b", 4);
  RowCache::Claim first = cache.claim("a");
  RowCache::Claim second = cache.claim("a");
  first.restore(*device_, *queue_);
  second.restore(*device_, *queue_);
  EXPECT_EQ(first.slot().device(), device_.get());
  EXPECT_EQ(&first.slot(), &second.slot());
  expect_rows(second, 'a', 4);
}

TEST_F(RowCacheTest, HandsTheRowsToThoseWhoWait) {
  RowCache cache = cache_of(4, 0);
  RowCache::Claim first = cache.claim("a");
  RowCache::Claim second = cache.claim("a");
  ASSERT_EQ(second.turn(), Turn::kWait);
  std::jthread waiting([&] {
    second.wait();
    expect_rows(second, 'a', 4);
  });
  while (cache.stats().waiting == 0) std::this_thread::yield();
  store(first, 'a', 4);
  waiting.join();
  EXPECT_EQ(first.use(), CacheUse::kMiss);
  EXPECT_EQ(second.use(), CacheUse::kJoin);
  EXPECT_EQ(cache.stats().misses, 1);
  EXPECT_EQ(cache.stats().joins, 1);
  EXPECT_EQ(cache.stats().freeable_bytes, 0);
}

TEST_F(RowCacheTest, WhoWaitsHoldsTheRowsBeforeItWakes) {
  RowCache cache = cache_of(4, 0);
  const int call = 0;
  RowCache::Claim first = cache.claim("a", &call);
  RowCache::Claim second = cache.claim("a", &call);
  store(first, 'a', 4);
  store(cache, "b", 4);
  EXPECT_EQ(cache.stats().evictions, 0);
  second.wait();
  expect_rows(second, 'a', 4);
  EXPECT_EQ(second.use(), CacheUse::kHit) << "of the same call";
  EXPECT_EQ(cache.stats().hits, 1);
}

TEST_F(RowCacheTest, LeavesNoHoldOfOneWhoLeftBeforeItWoke) {
  RowCache cache = cache_of(0, 4);
  std::optional<RowCache::Claim> second;
  {
    RowCache::Claim first = cache.claim("a");
    second.emplace(cache.claim("a"));
    store(first, 'a', 4);
  }
  EXPECT_EQ(cache.stats().freeable_bytes, 0);
  second.reset();
  EXPECT_EQ(cache.stats().freeable_bytes, 4 * 256);
}

TEST_F(RowCacheTest, HandsRowsOnForWhichThereIsNoRoom) {
  RowCache cache = cache_of(2, 3);
  RowCache::Claim first = cache.claim("a");
  RowCache::Claim second = cache.claim("a");
  store(first, 'a', 4);
  EXPECT_EQ(first.use(), CacheUse::kBypass);
  second.wait();
  second.restore(*device_, *queue_);
  expect_rows(second, 'a', 4);
  EXPECT_EQ(cache.claim("a").turn(), Turn::kEncode);
  EXPECT_EQ(cache.stats().items, 0);
  EXPECT_EQ(cache.stats().bypasses, 1);
  EXPECT_EQ(cache.stats().joins, 1);
}

TEST_F(RowCacheTest, OneWhoWaitsEncodesWhatThereIsNoMemoryFor) {
  test::DeferredDevice full(*kernels_, test::Schedule::kLast);
  const std::unique_ptr<Stream> queue = full.create_copy_stream();
  RowCache cache(std::vector<Device*>{&full}, 2 * 256, 0);
  RowCache::Claim first = cache.claim("a");
  RowCache::Claim second = cache.claim("a");
  TierRows rows(4 * kUnit, 'a');
  full.fail_once_after(0);
  first.describe({});
  first.store(full, *queue, rows.view());
  second.wait();
  ASSERT_EQ(second.turn(), Turn::kEncode);
  EXPECT_EQ(cache.stats().bypasses, 1);
}

TEST_F(RowCacheTest, OneWhoWaitsEncodesWhatAnotherGaveUp) {
  RowCache cache = cache_of(4, 0);
  std::optional<RowCache::Claim> first(cache.claim("a"));
  RowCache::Claim second = cache.claim("a");
  RowCache::Claim third = cache.claim("a");
  first.reset();
  second.wait();
  ASSERT_EQ(second.turn(), Turn::kEncode);
  store(second, 'a', 4);
  third.wait();
  expect_rows(third, 'a', 4);
}

TEST_F(RowCacheTest, ANewCallerEncodesWhatAnotherGaveUp) {
  RowCache cache = cache_of(4, 0);
  std::optional<RowCache::Claim> first(cache.claim("a"));
  RowCache::Claim second = cache.claim("a");
  first.reset();
  RowCache::Claim third = cache.claim("a");
  ASSERT_EQ(third.turn(), Turn::kEncode);
  store(third, 'a', 4);
  second.wait();
  expect_rows(second, 'a', 4);
}

TEST_F(RowCacheTest, TellsAFailureToThoseWhoWaitAndForgetsIt) {
  RowCache cache = cache_of(4, 0);
  RowCache::Claim first = cache.claim("a");
  RowCache::Claim second = cache.claim("a");
  first.fail(Error(ErrorCode::kCorruptData, "broken"));
  second.wait();
  ASSERT_EQ(second.turn(), Turn::kFailed);
  EXPECT_STREQ(second.error().what(), "broken");
  EXPECT_EQ(cache.claim("a").turn(), Turn::kEncode);
}

TEST_F(RowCacheTest, AnInterruptEndsWaitingAndNothingElse) {
  RowCache cache = cache_of(4, 0);
  RowCache::Claim first = cache.claim("a");
  std::stop_source stop;
  stop.request_stop();
  const Interrupt interrupt(stop.get_token(), Interrupt::Clock::time_point::max(), "test");
  {
    const InterruptScope scope(&interrupt);
    test::expect_error(ErrorCode::kCancelled, "", [&] { cache.claim("a").wait(); });
  }
  EXPECT_EQ(cache.stats().waiting, 0);
  store(first, 'a', 4);
  expect_rows(cache.claim("a"), 'a', 4);
}

/// Rows that came from elsewhere, and what is known of them.
struct Foreign {
  explicit Foreign(char key, std::int64_t units) : rows(units * kUnit, static_cast<float>(key)) {
    item.grid_thw = {1, 2, 3};
  }
  TierRows rows;
  Embedding item;
};

TEST_F(RowCacheTest, IsFilledWithRowsOfOthers) {
  for (const bool on_host : {true, false}) {
    RowCache cache = on_host ? cache_of(10, 10) : cache_of(10, 0);
    Foreign foreign('a', 4);
    {
      RowCache::Claim claim = cache.claim("a");
      ASSERT_TRUE(claim.fill(*device_, *queue_, foreign.item, foreign.rows.view()));
      EXPECT_EQ(claim.use(), CacheUse::kHit);
      EXPECT_EQ(claim.facts().grid_thw, foreign.item.grid_thw);
      EXPECT_EQ(claim.slot().device() == nullptr, on_host);
      expect_rows(claim, 'a', 4);
    }
    expect_rows(cache.claim("a"), 'a', 4);
    const EncoderCacheStats stats = cache.stats();
    EXPECT_EQ(stats.hits, 2);
    EXPECT_EQ(stats.queries, 2);
    EXPECT_EQ(stats.misses + stats.bypasses, 0);
    EXPECT_EQ(stats.freeable_bytes, stats.bytes) << "nobody reads them";
  }
}

TEST_F(RowCacheTest, GivesRowsOfOthersToThoseWhoWait) {
  RowCache cache = cache_of(0, 10);
  Foreign foreign('a', 4);
  RowCache::Claim claim = cache.claim("a");
  RowCache::Claim waits = cache.claim("a");
  ASSERT_EQ(waits.turn(), Turn::kWait);
  ASSERT_TRUE(claim.fill(*device_, *queue_, foreign.item, foreign.rows.view()));
  waits.wait();
  expect_rows(waits, 'a', 4);
  EXPECT_EQ(waits.use(), CacheUse::kJoin);
}

TEST_F(RowCacheTest, IsNotFilledWithWhatHasNoRoom) {
  RowCache cache = cache_of(2, 3);
  Foreign foreign('a', 4);
  RowCache::Claim claim = cache.claim("a");
  EXPECT_FALSE(claim.fill(*device_, *queue_, foreign.item, foreign.rows.view()));
  EXPECT_EQ(claim.turn(), Turn::kEncode);
  store(claim, 'a', 2);
  expect_rows(cache.claim("a"), 'a', 2);
}

TEST_F(RowCacheTest, FindsRowsWithoutCounting) {
  RowCache cache = cache_of(0, 10);
  EXPECT_FALSE(cache.find("a"));
  EXPECT_EQ(cache.claim("a").turn(), Turn::kEncode) << "nobody is waited for";
  store(cache, "a", 10);
  const EncoderCacheStats before = cache.stats();
  {
    const std::optional<RowCache::Claim> found = cache.find("a");
    ASSERT_TRUE(found);
    expect_rows(*found, 'a', 10);
    RowCache::Claim other = cache.claim("b");
    store(other, 'b', 10);
    EXPECT_TRUE(cache.find("a")) << "it stays while it is read";
  }
  EXPECT_EQ(cache.stats().hits, before.hits);
  EXPECT_EQ(cache.stats().queries, before.queries + 1) << "of the other one";
}

}  // namespace
}  // namespace fovea
