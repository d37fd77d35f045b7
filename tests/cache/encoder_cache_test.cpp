// Worked cases of the manager: lookups, room, holders, order of eviction.
#include "fovea/encoder_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cache/requests.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using namespace test;  // NOLINT: the helpers are written for these tests
using Keys = std::vector<std::string>;

constexpr std::int64_t kUnlimited = 1'000'000;

bool make_room(EncoderCache& cache, const CacheRequest& request, std::size_t item = 0,
               std::int64_t promised = 0) {
  return cache.make_room(request, item, kUnlimited, promised);
}

void enter(EncoderCache& cache, const CacheRequest& request, std::size_t item = 0) {
  ASSERT_TRUE(make_room(cache, request, item));
  cache.allocate(request, item);
}

TEST(EncoderCache, KeepsAnItemThatWasReleased) {
  EncoderCache cache(10);
  const CacheRequest r = request_of("r", "imgA", 4);
  EXPECT_FALSE(cache.lookup(r, 0));
  enter(cache, r);
  EXPECT_EQ(state_of(cache), (CacheState{6, 6, {}}));
  EXPECT_TRUE(cache.lookup(r, 0));
  cache.release(r, 0);
  EXPECT_EQ(state_of(cache), (CacheState{6, 10, {"imgA"}}));
  cache.release(r, 0);
  EXPECT_EQ(state_of(cache), (CacheState{6, 10, {"imgA"}})) << "nothing was held any more";
}

TEST(EncoderCache, EvictsWhatNobodyHolds) {
  EncoderCache cache(10);
  const CacheRequest x = request_of("rx", "x", 6);
  enter(cache, x);
  cache.release(x, 0);
  enter(cache, request_of("ry", "y", 5));
  EXPECT_EQ(cache.drain_evicted(), Keys{"x"});
  EXPECT_EQ(cache.drain_evicted(), Keys{});
  EXPECT_EQ(state_of(cache), (CacheState{5, 5, {}}));
}

TEST(EncoderCache, ReleasesAllItemsOfARequestInTheirOrder) {
  EncoderCache cache(10);
  const CacheRequest r{"r", {item_at("a", 0, 2), item_at("b", 2, 3)}};
  enter(cache, r, 0);
  enter(cache, r, 1);
  EXPECT_EQ(state_of(cache), (CacheState{5, 5, {}}));
  cache.release_all(r);
  EXPECT_EQ(state_of(cache), (CacheState{5, 10, {"a", "b"}}));
}

TEST(EncoderCache, ListsTheItemsThatAreHere) {
  EncoderCache cache(10);
  const CacheRequest r{"r", {item_at("m", 0, 2), item_at("n", 2, 4), item_at("o", 6, 3)}};
  enter(cache, r, 0);
  enter(cache, r, 2);
  EXPECT_THAT(cache.cached_items(r), ::testing::ElementsAre(0, 2));
  EXPECT_EQ(cache.num_free(), 5);
}

TEST(EncoderCache, ALookupHoldsWhatNobodyHeld) {
  EncoderCache cache(10);
  const CacheRequest z = request_of("r", "z", 4);
  enter(cache, z);
  cache.release(z, 0);
  EXPECT_EQ(state_of(cache), (CacheState{6, 10, {"z"}}));
  EXPECT_TRUE(cache.lookup(z, 0));
  EXPECT_EQ(state_of(cache), (CacheState{6, 6, {}}));
}

TEST(EncoderCache, HasNoRoomBeyondItsCapacityNorTheBudget) {
  EncoderCache cache(10);
  EXPECT_FALSE(make_room(cache, request_of("r", "z", 11)));
  EXPECT_FALSE(cache.make_room(request_of("r", "z", 10), 0, 9));
  EXPECT_TRUE(cache.make_room(request_of("r", "z", 10), 0, 10));
}

TEST(EncoderCache, EvictsInTheOrderOfTheLastRelease) {
  EncoderCache cache(12);
  const CacheRequest a = request_of("ra", "a", 4);
  const CacheRequest b = request_of("rb", "b", 4);
  const CacheRequest c = request_of("rc", "c", 4);
  for (const CacheRequest* r : {&a, &b, &c}) enter(cache, *r);
  for (const CacheRequest* r : {&b, &a, &c}) cache.release(*r, 0);
  EXPECT_EQ(cache.freeable_keys(), (Keys{"b", "a", "c"}));
  const CacheRequest d = request_of("rd", "d", 5);
  EXPECT_TRUE(make_room(cache, d));
  EXPECT_EQ(cache.drain_evicted(), (Keys{"b", "a"}));
  EXPECT_EQ(state_of(cache), (CacheState{8, 12, {"c"}}));
  cache.allocate(d, 0);
  EXPECT_EQ(state_of(cache), (CacheState{3, 7, {"c"}}));
}

TEST(EncoderCache, AHitMakesAnEntryTheYoungest) {
  EncoderCache cache(12);
  const CacheRequest a = request_of("ra", "a", 4);
  for (const CacheRequest& r : {a, request_of("rb", "b", 4), request_of("rc", "c", 4)}) {
    enter(cache, r);
    cache.release(r, 0);
  }
  EXPECT_TRUE(cache.lookup(a, 0));
  cache.release(a, 0);
  EXPECT_EQ(cache.freeable_keys(), (Keys{"b", "c", "a"}));
  EXPECT_TRUE(make_room(cache, request_of("rd", "d", 4)));
  EXPECT_EQ(cache.drain_evicted(), Keys{"b"});
}

TEST(EncoderCache, EvictsNothingIfThatWouldNotDo) {
  EncoderCache cache(10);
  const CacheRequest b = request_of("rb", "b", 4);
  enter(cache, request_of("ra", "a", 6));
  enter(cache, b);
  cache.release(b, 0);
  EXPECT_FALSE(make_room(cache, request_of("rc", "c", 5)));
  EXPECT_EQ(state_of(cache), (CacheState{0, 4, {"b"}}));
  EXPECT_TRUE(make_room(cache, request_of("rc", "c", 4)));
  EXPECT_EQ(cache.drain_evicted(), Keys{"b"});
  EXPECT_EQ(cache.num_free(), 4);
}

TEST(EncoderCache, CountsRowsThatWerePromised) {
  EncoderCache cache(10);
  const CacheRequest a = request_of("ra", "a", 5);
  enter(cache, a);
  cache.release(a, 0);
  const CacheRequest r{"r", {item_at("b", 0, 4), item_at("c", 4, 4)}};
  EXPECT_TRUE(make_room(cache, r, 0, 0));
  EXPECT_EQ(state_of(cache), (CacheState{5, 10, {"a"}}));
  EXPECT_TRUE(make_room(cache, r, 1, 4));
  EXPECT_EQ(cache.drain_evicted(), Keys{"a"});
  EXPECT_EQ(cache.num_free(), 10);
  cache.allocate(r, 0);
  cache.allocate(r, 1);
  EXPECT_EQ(state_of(cache), (CacheState{2, 2, {}}));
}

TEST(EncoderCache, ARequestMayHoldAKeyTwice) {
  EncoderCache cache(10);
  const CacheRequest r{"ra", {item_at("a", 0, 5), item_at("a", 5, 5)}};
  enter(cache, r, 0);
  EXPECT_TRUE(cache.lookup(r, 1));
  cache.release(r, 0);
  EXPECT_EQ(state_of(cache), (CacheState{5, 5, {}}));
  cache.release(r, 1);
  EXPECT_EQ(state_of(cache), (CacheState{5, 10, {"a"}}));
}

TEST(EncoderCache, RequestsShareAnEntry) {
  EncoderCache cache(10);
  const CacheRequest ra = request_of("ra", "a", 5);
  const CacheRequest rb = request_of("rb", "a", 5);
  enter(cache, ra);
  EXPECT_TRUE(cache.lookup(rb, 0));
  cache.release_all(ra);
  EXPECT_EQ(state_of(cache), (CacheState{5, 5, {}}));
  cache.release_all(rb);
  EXPECT_EQ(state_of(cache), (CacheState{5, 10, {"a"}}));
}

TEST(EncoderCache, AnEvictedKeyMayReturnBeforeTheDrain) {
  EncoderCache cache(6);
  const CacheRequest a = request_of("ra", "a", 6);
  const CacheRequest b = request_of("rb", "b", 6);
  enter(cache, a);
  cache.release(a, 0);
  enter(cache, b);
  cache.release(b, 0);
  enter(cache, a);
  EXPECT_EQ(cache.drain_evicted(), (Keys{"a", "b"}));
  EXPECT_THAT(cache.cached_items(a), ::testing::ElementsAre(0));
  EXPECT_EQ(state_of(cache), (CacheState{0, 0, {}}));
}

TEST(EncoderCache, AReleaseAfterTheEvictionHasNoEffect) {
  EncoderCache cache(6);
  const CacheRequest a = request_of("ra", "a", 6);
  enter(cache, a);
  cache.release(a, 0);
  enter(cache, request_of("rb", "b", 6));
  cache.release(a, 0);
  EXPECT_THAT(cache.cached_items(a), ::testing::IsEmpty());
  EXPECT_EQ(state_of(cache), (CacheState{0, 0, {}}));
}

TEST(EncoderCache, NeverEntersAnItemWithoutRows) {
  EncoderCache cache(4);
  const CacheRequest r{"r", {masked_item("a", 0, "000")}};
  EXPECT_TRUE(cache.make_room(r, 0, 0));
  cache.allocate(r, 0);
  EXPECT_TRUE(cache.lookup(r, 0));
  cache.release(r, 0);
  EXPECT_EQ(state_of(cache), (CacheState{4, 4, {}}));
  EXPECT_THAT(cache.cached_items(r), ::testing::IsEmpty());
}

TEST(EncoderCache, RefusesAKeyOfAnotherSize) {
  EncoderCache cache(10);
  enter(cache, request_of("r", "a", 5));
  expect_error(ErrorCode::kInvalidArgument, "has 7 rows, the cache has 5 for its key a",
               [&] { cache.lookup(request_of("s", "a", 7), 0); });
  EXPECT_EQ(state_of(cache), (CacheState{5, 5, {}}));
}

TEST(EncoderCache, AResetForgetsEverything) {
  EncoderCache cache(10);
  const CacheRequest r{"r", {item_at("a", 0, 5), item_at("b", 5, 5)}};
  enter(cache, r, 0);
  enter(cache, r, 1);
  cache.reset();
  EXPECT_EQ(state_of(cache), (CacheState{10, 10, {}}));
  EXPECT_THAT(cache.cached_items(r), ::testing::IsEmpty());
  EXPECT_EQ(cache.drain_evicted(), Keys{});
}

TEST(EncoderCache, AllocatingWithoutRoomIsABug) {
  EncoderCache cache(4);
  expect_error(ErrorCode::kInternal, "5 rows allocated without room",
               [&] { cache.allocate(request_of("r", "a", 5), 0); });
  EXPECT_EQ(state_of(cache), (CacheState{4, 4, {}}));
}

TEST(EncoderCache, AllocatingWhatIsThereHoldsIt) {
  EncoderCache cache(10);
  const CacheRequest a = request_of("ra", "a", 5);
  enter(cache, a);
  cache.release(a, 0);
  cache.allocate(a, 0);
  EXPECT_EQ(state_of(cache), (CacheState{5, 5, {}}));
}

TEST(EncoderCache, HasNoNegativeCapacity) {
  expect_error(ErrorCode::kInvalidArgument, "got -1", [] { EncoderCache cache(-1); });
}

}  // namespace
}  // namespace fovea
