// Who encodes an item, who waits for it, and what stays of it.
#include "cache/row_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "core/interrupt.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using Turn = RowCache::Turn;

/// An item of `bytes` bytes that tell it from others.
Embedding item_of(char content, std::size_t bytes) {
  Embedding item;
  item.name = "encoded";
  item.rows = static_cast<std::int64_t>(bytes);
  item.width = 1;
  item.grid_thw = {1, 2, 3};
  item.times.encode_ms = 7;
  item.data.resize(bytes);
  std::ranges::fill(item.data, static_cast<std::byte>(content));
  return item;
}

/// Encodes, or reads, an item of `key`; its content is the key's first character.
Embedding fetch(RowCache& cache, const std::string& key, std::size_t bytes) {
  RowCache::Claim claim = cache.claim(key);
  Embedding item = item_of(key.front(), bytes);
  if (claim.turn() == Turn::kEncode) {
    claim.publish(item);
  } else {
    claim.read(item);
  }
  return item;
}

/// Waits until so many claims wait.
void await_waiting(const RowCache& cache, std::int64_t count) {
  while (cache.stats().waiting < count) std::this_thread::yield();
}

TEST(RowCache, ReadsWhatWasPublished) {
  RowCache cache(100);
  (void)fetch(cache, "a", 40);
  Embedding item;
  item.name = "asked";
  item.times.read_ms = 3;
  RowCache::Claim claim = cache.claim("a");
  ASSERT_EQ(claim.turn(), Turn::kRead);
  claim.read(item);
  EXPECT_EQ(item.name, "asked");
  EXPECT_EQ(item.times.read_ms, 3);
  EXPECT_EQ(item.times.encode_ms, 0);
  EXPECT_EQ(item.rows, 40);
  EXPECT_EQ(item.grid_thw, item_of('a', 1).grid_thw);
  EXPECT_EQ(item.data, item_of('a', 40).data);
}

TEST(RowCache, CountsWhatBecomesOfEveryItem) {
  RowCache cache(100);
  (void)fetch(cache, "a", 60);
  (void)fetch(cache, "a", 60);
  (void)fetch(cache, "b", 50);
  (void)fetch(cache, "c", 101);
  cache.count_repeats(2);
  const EncoderCacheStats stats = cache.stats();
  EXPECT_EQ(stats.queries, 6);
  EXPECT_EQ(stats.hits, 3);
  EXPECT_EQ(stats.joins, 0);
  EXPECT_EQ(stats.misses, 2);
  EXPECT_EQ(stats.bypasses, 1);
  EXPECT_EQ(stats.evictions, 1);
  EXPECT_EQ(stats.items, 1);
  EXPECT_EQ(stats.bytes, 50);
  EXPECT_EQ(stats.rows, 50);
  EXPECT_EQ(stats.freeable_bytes, 50);
  EXPECT_DOUBLE_EQ(stats.hit_rate(), 0.5);
}

TEST(RowCache, EvictsWhatWasReadLongestAgo) {
  RowCache cache(100);
  for (const char* key : {"a", "b", "a", "c"}) (void)fetch(cache, key, 40);
  EXPECT_EQ(cache.claim("a").turn(), Turn::kRead);
  EXPECT_EQ(cache.claim("b").turn(), Turn::kEncode);
}

TEST(RowCache, AnItemLargerThanTheCapacityChangesNothing) {
  RowCache cache(100);
  (void)fetch(cache, "a", 60);
  EXPECT_EQ(fetch(cache, "b", 101).data, item_of('b', 101).data);
  EXPECT_EQ(cache.stats().bypasses, 1);
  EXPECT_EQ(cache.stats().bytes, 60);
  EXPECT_EQ(cache.claim("a").turn(), Turn::kRead);
}

TEST(RowCache, KeepsNoNewItemWhileAllRowsAreRead) {
  RowCache cache(100);
  (void)fetch(cache, "a", 60);
  {
    const RowCache::Claim slow = cache.claim("a");
    (void)fetch(cache, "b", 60);
    EXPECT_EQ(cache.stats().bypasses, 1);
    EXPECT_EQ(cache.claim("a").turn(), Turn::kRead);
  }
  (void)fetch(cache, "b", 60);
  EXPECT_EQ(cache.claim("b").turn(), Turn::kRead);
}

TEST(RowCache, NeverKeepsAnItemWithoutRows) {
  RowCache cache(100);
  (void)fetch(cache, "a", 0);
  EXPECT_EQ(cache.stats().items, 0);
  EXPECT_EQ(cache.claim("a").turn(), Turn::kEncode);
}

TEST(RowCache, HandsTheRowsToThoseWhoWait) {
  RowCache cache(100);
  RowCache::Claim first = cache.claim("a");
  RowCache::Claim second = cache.claim("a");
  ASSERT_EQ(second.turn(), Turn::kWait);
  std::jthread waiting([&] {
    second.wait();
    ASSERT_EQ(second.turn(), Turn::kRead);
    Embedding item;
    second.read(item);
    EXPECT_EQ(item.data, item_of('a', 40).data);
  });
  first.publish(item_of('a', 40));
  waiting.join();
  EXPECT_EQ(cache.stats().misses, 1);
  EXPECT_EQ(cache.stats().joins, 1);
  EXPECT_EQ(cache.stats().freeable_bytes, 40);
}

TEST(RowCache, HandsRowsOnForWhichThereIsNoRoom) {
  RowCache cache(10);
  RowCache::Claim first = cache.claim("a");
  RowCache::Claim second = cache.claim("a");
  first.publish(item_of('a', 40));
  second.wait();
  Embedding item;
  second.read(item);
  EXPECT_EQ(item.data, item_of('a', 40).data);
  EXPECT_EQ(cache.stats().items, 0);
  EXPECT_EQ(cache.stats().bypasses, 1);
}

TEST(RowCache, WhoWaitsHoldsTheRowsBeforeItWakes) {
  RowCache cache(100);
  RowCache::Claim first = cache.claim("a");
  RowCache::Claim second = cache.claim("a");
  first.publish(item_of('a', 60));
  (void)fetch(cache, "b", 60);
  EXPECT_EQ(cache.stats().evictions, 0);
  second.wait();
  EXPECT_EQ(second.turn(), Turn::kRead);
}

TEST(RowCache, TellsAFailureToThoseWhoWaitAndForgetsIt) {
  RowCache cache(100);
  RowCache::Claim first = cache.claim("a");
  RowCache::Claim second = cache.claim("a");
  first.fail(Error(ErrorCode::kCorruptData, "broken"));
  second.wait();
  ASSERT_EQ(second.turn(), Turn::kFailed);
  EXPECT_STREQ(second.error().what(), "broken");
  EXPECT_EQ(cache.claim("a").turn(), Turn::kEncode);
}

TEST(RowCache, OneWhoWaitsEncodesWhatAnotherGaveUp) {
  RowCache cache(100);
  std::optional<RowCache::Claim> first(cache.claim("a"));
  RowCache::Claim second = cache.claim("a");
  RowCache::Claim third = cache.claim("a");
  first.reset();
  second.wait();
  ASSERT_EQ(second.turn(), Turn::kEncode);
  second.publish(item_of('a', 40));
  third.wait();
  EXPECT_EQ(third.turn(), Turn::kRead);
}

TEST(RowCache, ANewCallerEncodesWhatAnotherGaveUp) {
  RowCache cache(100);
  std::optional<RowCache::Claim> first(cache.claim("a"));
  RowCache::Claim second = cache.claim("a");
  first.reset();
  RowCache::Claim third = cache.claim("a");
  ASSERT_EQ(third.turn(), Turn::kEncode);
  third.publish(item_of('a', 40));
  second.wait();
  EXPECT_EQ(second.turn(), Turn::kRead);
}

TEST(RowCache, AnInterruptEndsWaitingAndNothingElse) {
  RowCache cache(100);
  RowCache::Claim first = cache.claim("a");
  std::stop_source stop;
  std::jthread waiting([&] {
    const Interrupt interrupt(stop.get_token(), Interrupt::Clock::time_point::max(), "test");
    const InterruptScope scope(&interrupt);
    test::expect_error(ErrorCode::kCancelled, "", [&] { cache.claim("a").wait(); });
  });
  await_waiting(cache, 1);
  stop.request_stop();
  waiting.join();
  EXPECT_EQ(cache.stats().waiting, 0);
  first.publish(item_of('a', 40));
  EXPECT_EQ(cache.claim("a").turn(), Turn::kRead);
}

TEST(RowCache, LeavesNoHoldOfOneWhoLeftBeforeItWoke) {
  RowCache cache(100);
  std::optional<RowCache::Claim> second;
  {
    RowCache::Claim first = cache.claim("a");
    second.emplace(cache.claim("a"));
    first.publish(item_of('a', 60));
  }
  EXPECT_EQ(cache.stats().freeable_bytes, 0);
  second.reset();
  EXPECT_EQ(cache.stats().freeable_bytes, 60);
}

TEST(RowCache, SurvivesAStoreWithoutMemory) {
  bool is_full = true;
  RowCache cache(100, [&, host = host_row_store()](std::span<const std::byte> rows) {
    if (is_full) throw std::bad_alloc();
    return host(rows);
  });
  {
    RowCache::Claim first = cache.claim("a");
    EXPECT_THROW(first.publish(item_of('a', 60)), std::bad_alloc);
  }
  EXPECT_EQ(cache.stats().items, 0);
  is_full = false;
  (void)fetch(cache, "b", 60);
  (void)fetch(cache, "a", 40);
  EXPECT_EQ(cache.stats().bytes, 100);
}

}  // namespace
}  // namespace fovea
