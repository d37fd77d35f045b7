// Who encodes an item, who gets its rows, and which memory they are in.
#include "engine/tiers/tier_cache.h"

#include <gtest/gtest.h>

#include <thread>

#include "core/interrupt.h"
#include "engine/tiers/tier_rows.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using test::TierRows;
using Turn = TierCache::Turn;

constexpr std::int64_t kUnit = 16;  // rows that take 256 bytes

class TierCacheTest : public ::testing::Test {
 protected:
  /// Sizes in units.
  [[nodiscard]] TierCache cache_of(std::int64_t device, std::int64_t host, int devices = 1) {
    std::vector<Device*> some{device_.get(), other_.get()};
    some.resize(static_cast<std::size_t>(devices));
    return {some, device * 256, host * 256};
  }
  void store(TierCache& cache, const std::string& key, std::int64_t units) {
    TierRows rows(units * kUnit, static_cast<float>(key.front()));
    test::store(cache, key, *device_, *queue_, rows.view());
  }
  void expect_rows(const TierCache::Claim& claim, char key, std::int64_t units) {
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

TEST_F(TierCacheTest, ReadsWhatWasStored) {
  TierCache cache = cache_of(10, 0);
  store(cache, "a", 4);
  const TierCache::Claim claim = cache.claim("a");
  expect_rows(claim, 'a', 4);
  EXPECT_EQ(claim.facts().rows, 4 * kUnit);
  EXPECT_EQ(claim.facts().width, TierRows::kWidth);
  EXPECT_EQ(claim.facts().grid_thw, (std::array<std::int64_t, 3>{1, 2, 3}));
  EXPECT_TRUE(claim.facts().name.empty());
}

TEST_F(TierCacheTest, EvictsWhatWasAskedForLongestAgo) {
  TierCache cache = cache_of(10, 0);
  store(cache, "a", 4);
  store(cache, "b", 4);
  (void)cache.claim("a");
  store(cache, "c", 4);
  EXPECT_EQ(cache.claim("a").turn(), Turn::kRead);
  EXPECT_EQ(cache.claim("b").turn(), Turn::kEncode);
}

TEST_F(TierCacheTest, EvictsUntilThereIsAHoleThatIsLargeEnough) {
  TierCache cache = cache_of(9, 0);
  store(cache, "a", 3);
  store(cache, "b", 3);
  store(cache, "c", 3);
  (void)cache.claim("b");
  store(cache, "d", 6);  // "a" and "c" do not lie side by side
  expect_rows(cache.claim("d"), 'd', 6);
  EXPECT_EQ(cache.stats().items, 1);
}

TEST_F(TierCacheTest, NeverEvictsWhatSomebodyHasAClaimTo) {
  TierCache cache = cache_of(10, 0);
  store(cache, "a", 6);
  const TierCache::Claim held = cache.claim("a");
  store(cache, "b", 6);
  EXPECT_EQ(cache.stats().bypasses, 1);
  expect_rows(held, 'a', 6);
  EXPECT_EQ(cache.claim("b").turn(), Turn::kEncode);
}

TEST_F(TierCacheTest, AnItemThatFitsNowhereEvictsNothing) {
  TierCache cache = cache_of(10, 5);
  store(cache, "a", 4);
  store(cache, "b", 11);
  store(cache, "c", 0);
  EXPECT_EQ(cache.stats().bypasses, 2);
  EXPECT_EQ(cache.stats().items, 1);
  EXPECT_EQ(cache.stats().device.evictions, 0);
}

TEST_F(TierCacheTest, WhatLeavesTheDeviceGoesToTheHostAndThenForGood) {
  TierCache cache = cache_of(4, 8);
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

TEST_F(TierCacheTest, WhatIsTooLargeForTheDeviceIsKeptOnTheHost) {
  TierCache cache = cache_of(2, 8);
  store(cache, "a", 5);
  const TierCache::Claim claim = cache.claim("a");
  EXPECT_EQ(claim.slot().device(), nullptr);
  expect_rows(claim, 'a', 5);
}

TEST_F(TierCacheTest, AnEntryLiesOnTheDeviceThatEncodedIt) {
  TierCache cache = cache_of(4, 0, 2);
  TierRows rows(kUnit, 7);
  test::store(cache, "a", *other_, *queue_, rows.view());
  EXPECT_EQ(cache.claim("a").slot().device(), other_.get());
  EXPECT_EQ(cache.stats().device.capacity_bytes, 8 * 256);
}

TEST_F(TierCacheTest, TwoWhoHoldRowsOfTheHostBringThemBackOnce) {
  TierCache cache = cache_of(4, 8);
  store(cache, "a", 4);
  store(cache, "b", 4);
  TierCache::Claim first = cache.claim("a");
  TierCache::Claim second = cache.claim("a");
  first.restore(*device_, *queue_);
  second.restore(*device_, *queue_);
  EXPECT_EQ(first.slot().device(), device_.get());
  EXPECT_EQ(&first.slot(), &second.slot());
  expect_rows(second, 'a', 4);
}

TEST_F(TierCacheTest, HandsTheRowsToThoseWhoWait) {
  TierCache cache = cache_of(4, 0);
  TierCache::Claim first = cache.claim("a");
  TierCache::Claim second = cache.claim("a");
  ASSERT_EQ(second.turn(), Turn::kWait);
  std::jthread waiting([&] {
    second.wait(false);
    expect_rows(second, 'a', 4);
  });
  while (cache.stats().waiting == 0) std::this_thread::yield();
  TierRows rows(4 * kUnit, 'a');
  first.describe({});
  first.store(*device_, *queue_, rows.view());
  waiting.join();
  EXPECT_EQ(cache.stats().misses, 1);
  EXPECT_EQ(cache.stats().joins, 1);
  EXPECT_EQ(cache.stats().freeable_bytes, 0);
}

TEST_F(TierCacheTest, WhoWaitsHoldsTheRowsBeforeItWakes) {
  TierCache cache = cache_of(4, 0);
  TierCache::Claim first = cache.claim("a");
  TierCache::Claim second = cache.claim("a");
  TierRows rows(4 * kUnit, 'a');
  first.describe({});
  first.store(*device_, *queue_, rows.view());
  store(cache, "b", 4);
  EXPECT_EQ(cache.stats().evictions, 0);
  second.wait(true);
  expect_rows(second, 'a', 4);
  EXPECT_EQ(cache.stats().hits, 1) << "of the same call";
}

TEST_F(TierCacheTest, OneWhoWaitsEncodesWhatFoundNoRoom) {
  TierCache cache = cache_of(2, 0);
  TierCache::Claim first = cache.claim("a");
  TierCache::Claim second = cache.claim("a");
  TierRows rows(4 * kUnit, 'a');
  first.describe({});
  first.store(*device_, *queue_, rows.view());
  second.wait(false);
  EXPECT_EQ(second.turn(), Turn::kEncode);
}

TEST_F(TierCacheTest, OneWhoWaitsEncodesWhatAnotherGaveUp) {
  TierCache cache = cache_of(4, 0);
  std::optional<TierCache::Claim> first(cache.claim("a"));
  TierCache::Claim second = cache.claim("a");
  first.reset();
  second.wait(false);
  EXPECT_EQ(second.turn(), Turn::kEncode);
}

TEST_F(TierCacheTest, TellsAFailureToThoseWhoWaitAndForgetsIt) {
  TierCache cache = cache_of(4, 0);
  TierCache::Claim first = cache.claim("a");
  TierCache::Claim second = cache.claim("a");
  first.fail(Error(ErrorCode::kCorruptData, "broken"));
  second.wait(false);
  ASSERT_EQ(second.turn(), Turn::kFailed);
  EXPECT_STREQ(second.error().what(), "broken");
  EXPECT_EQ(cache.claim("a").turn(), Turn::kEncode);
}

TEST_F(TierCacheTest, AnInterruptEndsWaitingAndNothingElse) {
  TierCache cache = cache_of(4, 0);
  TierCache::Claim first = cache.claim("a");
  std::stop_source stop;
  stop.request_stop();
  const Interrupt interrupt(stop.get_token(), Interrupt::Clock::time_point::max(), "test");
  {
    const InterruptScope scope(&interrupt);
    test::expect_error(ErrorCode::kCancelled, "", [&] { cache.claim("a").wait(false); });
  }
  EXPECT_EQ(cache.stats().waiting, 0);
  TierRows rows(4 * kUnit, 'a');
  first.describe({});
  first.store(*device_, *queue_, rows.view());
  expect_rows(cache.claim("a"), 'a', 4);
}

}  // namespace
}  // namespace fovea
