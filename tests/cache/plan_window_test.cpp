// Worked cases: what a window has encoded, in one step, over a chunked prompt, after preemption.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "cache/requests.h"
#include "fovea/encoder_cache.h"
#include "support/expect_error.h"

namespace fovea {

bool operator==(const WindowPlan& a, const WindowPlan& b) {
  return a.local == b.local && a.length == b.length && a.compute_budget == b.compute_budget &&
         a.remote == b.remote && a.conflict == b.conflict;
}

void PrintTo(const WindowPlan& plan, std::ostream* out) {  // NOLINT: GoogleTest looks for it
  *out << "local " << ::testing::PrintToString(plan.local) << ", length " << plan.length
       << ", budget " << plan.compute_budget << ", remote "
       << ::testing::PrintToString(plan.remote);
}

namespace {

using namespace test;  // NOLINT: the helpers are written for these tests
using Items = std::vector<std::size_t>;

const CacheRequest kTwoItems{"r", {item_at("a", 4, 4), item_at("b", 12, 4)}};
const CacheRequest kHalfMasked{"r", {masked_item("v", 2, "000111")}};

/// A window of `length` tokens from `computed`.
IndexRange window(std::int64_t computed, std::int64_t length) {
  return {computed, computed + length};
}

/// What a plan is expected to be.
WindowPlan expected(Items local, std::int64_t length, std::int64_t budget, Items remote = {}) {
  return {.local = std::move(local),
          .remote = std::move(remote),
          .length = length,
          .compute_budget = budget};
}

struct Case {
  const char* name;
  const CacheRequest* request;
  std::int64_t capacity;
  WindowLimits limits;
  IndexRange window;
  WindowPlan plan;
};

class PlanOfAnEmptyCache : public ::testing::TestWithParam<Case> {};

TEST_P(PlanOfAnEmptyCache, IsTheWorkedOne) {
  const Case& c = GetParam();
  EncoderCache cache(c.capacity);
  EXPECT_EQ(plan_window(cache, *c.request, c.window, c.limits), c.plan);
  EXPECT_EQ(cache.drain_evicted(), std::vector<std::string>{});
}

const WindowLimits kBudget100{.compute_budget = 100};
const WindowLimits kWholeItems{.compute_budget = 100, .no_split = true};
const WindowLimits kDraft{.compute_budget = 100, .look_ahead = 1};
const CacheRequest kSameKey{"r", {item_at("a", 0, 4), item_at("a", 6, 4)}};
const CacheRequest kOtherRows{"r", {item_at("a", 0, 4), item_at("a", 6, 3)}};
const CacheRequest kTight{"r", {item_at("a", 0, 5), item_at("b", 6, 4)}};

WindowLimits remote(const std::string& remote_key) {
  return {.compute_budget = 100,
          .is_remote = [remote_key](const std::string& key) { return key == remote_key; }};
}

INSTANTIATE_TEST_SUITE_P(
    Cases, PlanOfAnEmptyCache,
    ::testing::Values(
        Case{"EncodesEveryItemOfTheWindow", &kTwoItems, 100, kBudget100, window(0, 16),
             expected({0, 1}, 16, 92)},
        Case{"LeavesAnItemThatTheWindowEndsAt", &kTwoItems, 100, kBudget100, window(0, 4),
             expected({}, 4, 100)},
        Case{"EncodesAnItemThatTheWindowEndsIn", &kTwoItems, 100, kBudget100, window(0, 5),
             expected({0}, 5, 96)},
        Case{"LeavesAnItemThatIsConsumed", &kTwoItems, 100, kBudget100, window(8, 8),
             expected({1}, 8, 96)},
        Case{"EncodesForTheLastPosition", &kTwoItems, 100, kBudget100, window(7, 5),
             expected({0}, 5, 96)},
        Case{"StopsAtTheBudget",
             &kTwoItems,
             100,
             {.compute_budget = 7},
             window(0, 16),
             expected({0}, 12, 3)},
        Case{"StopsAtTheCapacity", &kTwoItems, 6, kBudget100, window(0, 16), expected({0}, 12, 96)},
        Case{"StopsBeforeTheFirstItem", &kTwoItems, 3, kBudget100, window(0, 16),
             expected({}, 4, 100)},
        Case{"WaitsAtTheFirstItem", &kTwoItems, 3, kBudget100, window(4, 4), expected({}, 0, 100)},
        Case{"WaitsInsideTheFirstItem", &kTwoItems, 3, kBudget100, window(6, 10),
             expected({}, 0, 100)},
        Case{"StopsInFrontOfAnItemItWouldSplit", &kTwoItems, 100, kWholeItems, window(0, 6),
             expected({}, 4, 100)},
        Case{"TakesAWholeItem", &kTwoItems, 100, kWholeItems, window(0, 8), expected({0}, 8, 96)},
        Case{"FinishesAnItemThatWasSplit", &kTwoItems, 100, kWholeItems, window(5, 3),
             expected({0}, 3, 96)},
        Case{"StopsInFrontOfTheNextItem", &kTwoItems, 100, kWholeItems, window(0, 14),
             expected({0}, 12, 96)},
        Case{"EncodesTheSameKeyOnce", &kSameKey, 100, kBudget100, window(0, 10),
             expected({0}, 10, 96)},
        Case{"NeedsNoItemForTextBetween", &kHalfMasked, 100, kBudget100, window(0, 5),
             expected({}, 5, 100)},
        Case{"NeedsAnItemForItsFirstRow", &kHalfMasked, 100, kBudget100, window(0, 6),
             expected({0}, 6, 97)},
        Case{"NeedsAnItemForAllItsRows", &kHalfMasked, 100, kBudget100, window(0, 8),
             expected({0}, 8, 97)},
        Case{"NeedsAnItemForItsLastRows", &kHalfMasked, 100, kBudget100, window(5, 3),
             expected({0}, 3, 97)},
        Case{"NeedsNoItemBehindIt", &kHalfMasked, 100, kBudget100, window(8, 3),
             expected({}, 3, 100)},
        Case{"FetchesTheLastItem", &kTwoItems, 100, remote("b"), window(0, 16),
             expected({0}, 16, 96, {1})},
        Case{"FetchesTheFirstItem", &kTwoItems, 100, remote("a"), window(0, 16),
             expected({1}, 16, 96, {0})},
        Case{"EncodesAnItemThatOnlyTheDraftReaches", &kTwoItems, 100, kDraft, window(0, 4),
             expected({0}, 4, 96)},
        Case{"RunsUpToAnItemWithoutRoom", &kTwoItems, 3, kDraft, window(0, 16),
             expected({}, 4, 100)},
        Case{"RunsUpToTheEndBeforeAnItemWithoutRoom", &kTwoItems, 3, kDraft, window(0, 4),
             expected({}, 4, 100)},
        Case{"LeavesAnItemThatBeginsWithItAndWouldBeSplit", &kTwoItems, 100, kWholeItems,
             window(4, 3), expected({}, 0, 100)},
        Case{"SplitsNoItemThatAnEqualOneIsPlannedFor", &kSameKey, 100, kWholeItems, window(0, 8),
             expected({0}, 6, 96)},
        Case{"StopsBeforeWhatTheDraftWouldSplit",
             &kTwoItems,
             100,
             {.compute_budget = 100, .look_ahead = 2, .no_split = true},
             window(0, 7),
             expected({}, 2, 100)},
        Case{"EndsInFrontOfWhatTheDraftNeedsAtTheEnd",
             &kTwoItems,
             100,
             {.compute_budget = 100, .look_ahead = 3, .num_tokens = 18},
             window(0, 17),
             expected({0, 1}, 15, 92)},
        Case{"RunsToTheEndOfARequest",
             &kTwoItems,
             100,
             {.compute_budget = 100, .look_ahead = 3, .num_tokens = 18},
             window(0, 18),
             expected({0, 1}, 18, 92)},
        Case{"RefusesAKeyOfOtherRowsInOneWindow",
             &kOtherRows,
             100,
             kBudget100,
             window(0, 10),
             {.compute_budget = 96, .conflict = 1}},
        Case{"OfNoTokensIsEmpty", &kTwoItems, 100, kBudget100, window(0, 0), expected({}, 0, 100)},
        Case{"CountsWhatItHasPromised", &kTight, 8, kBudget100, window(0, 10),
             expected({0}, 6, 95)}),
    [](const auto& of) { return of.param.name; });

TEST(PlanWindow, HoldsWhatIsCached) {
  EncoderCache cache(100);
  const CacheRequest other = request_of("q", "a", 4);
  cache.allocate(other, 0);
  cache.release(other, 0);
  EXPECT_EQ(plan_window(cache, kTwoItems, window(0, 16), kBudget100), expected({1}, 16, 96));
  EXPECT_EQ(cache.freeable_keys(), std::vector<std::string>{}) << "the request holds a";
}

TEST(PlanWindow, MakesRoomForAnItemWhoseRowsComeInALaterWindow) {
  EncoderCache cache(6);
  const CacheRequest other = request_of("q", "o", 6);
  cache.allocate(other, 0);
  cache.release(other, 0);
  EXPECT_EQ(plan_window(cache, kHalfMasked, window(0, 5), kBudget100), expected({}, 5, 100));
  EXPECT_EQ(cache.drain_evicted(), std::vector<std::string>{"o"});
}

TEST(PlanWindow, SplitsNoItemWhoseRowsAreCached) {
  EncoderCache cache(100);
  cache.allocate(kTwoItems, 0);
  EXPECT_EQ(plan_window(cache, kTwoItems, window(1, 5), kWholeItems), expected({}, 3, 100));
}

TEST(PlanWindow, RefusesAKeyOfOtherRowsInTheCache) {
  EncoderCache cache(100);
  cache.allocate(request_of("q", "b", 5), 0);
  const WindowPlan plan = plan_window(cache, kTwoItems, window(0, 16), kBudget100);
  EXPECT_EQ(plan, (WindowPlan{.compute_budget = 96, .conflict = 1}));
}

TEST(PlanWindow, LetsADuplicateHoldTheRowsWhenTheFirstIsConsumed) {
  EncoderCache cache(100);
  const WindowPlan plan = plan_window(cache, kSameKey, window(0, 10), kBudget100);
  EXPECT_EQ(plan.duplicates, Items{1});
  cache.allocate(kSameKey, 0);
  cache.allocate(kSameKey, 1);
  release_consumed(cache, kSameKey, 5);
  EXPECT_EQ(cache.num_freeable(), 96);
  release_consumed(cache, kSameKey, 10);
  EXPECT_EQ(cache.num_freeable(), 100);
}

TEST(PlanWindow, DraftDoesNotKeepARequestFromRunningThatFits) {
  const CacheRequest r{"r", {item_at("k", 0, 50), item_at("j", 51, 90)}};
  EncoderCache cache(100);
  const WindowLimits limits{.compute_budget = 100, .look_ahead = 2};
  EXPECT_EQ(plan_window(cache, r, window(0, 49), limits), expected({0}, 49, 50));
  cache.allocate(r, 0);
  release_consumed(cache, r, 49);
  EXPECT_EQ(plan_window(cache, r, window(49, 60), limits).length, 2);
  release_consumed(cache, r, 51);
  EXPECT_EQ(plan_window(cache, r, window(51, 90), limits), expected({1}, 90, 10));
  EXPECT_EQ(cache.drain_evicted(), std::vector<std::string>{"k"});
}

/// Plans a window and allocates what it encodes. @return the plan.
WindowPlan run(EncoderCache& cache, const CacheRequest& request, IndexRange window,
               std::int64_t budget) {
  WindowPlan plan = plan_window(cache, request, window, {.compute_budget = budget});
  for (const std::size_t item : plan.local) cache.allocate(request, item);
  return plan;
}

TEST(ChunkedPrompt, EncodesAnItemInTheFirstChunkThatHasARowOfIt) {
  const CacheRequest r{"r", {masked_item("a", 2, "011110"), masked_item("b", 10, "011110")}};
  EncoderCache cache(8);
  const auto step = [&](std::int64_t computed, std::int64_t length) {
    const WindowPlan plan = run(cache, r, window(computed, length), 8);
    release_consumed(cache, r, computed + length);
    return plan.local;
  };
  EXPECT_EQ(step(0, 5), Items{0});
  EXPECT_EQ(state_of(cache), (CacheState{4, 4, {}}));
  EXPECT_EQ(step(5, 5), Items{});
  EXPECT_EQ(state_of(cache), (CacheState{4, 8, {"a"}}));
  EXPECT_EQ(step(10, 5), Items{1});
  EXPECT_EQ(state_of(cache), (CacheState{0, 4, {"a"}}));
  EXPECT_EQ(step(15, 3), Items{});
  EXPECT_EQ(state_of(cache), (CacheState{0, 8, {"a", "b"}}));
}

TEST(ChunkedPrompt, EvictsWhatIsConsumed) {
  const CacheRequest r{"r", {masked_item("a", 2, "011110"), masked_item("b", 10, "011110")}};
  EncoderCache cache(4);
  EXPECT_EQ(run(cache, r, window(0, 9), 8).local, Items{0});
  release_consumed(cache, r, 9);
  EXPECT_EQ(cache.drain_evicted(), std::vector<std::string>{});
  EXPECT_EQ(run(cache, r, window(9, 9), 8).local, Items{1});
  EXPECT_EQ(cache.drain_evicted(), std::vector<std::string>{"a"});
}

TEST(ReleaseConsumed, KeepsAnItemUpToItsLastPosition) {
  EncoderCache cache(100);
  (void)run(cache, kTwoItems, window(0, 16), 100);
  release_consumed(cache, kTwoItems, 7);
  EXPECT_EQ(cache.freeable_keys(), std::vector<std::string>{});
  release_consumed(cache, kTwoItems, 8);
  EXPECT_EQ(cache.freeable_keys(), std::vector<std::string>{"a"});
}

class Preemption : public ::testing::Test {
 protected:
  Preemption() { first_ = run(cache_, r_, window(0, 12), 100); }

  const CacheRequest r_{"r", {item_at("a", 0, 6), item_at("b", 8, 4)}};
  EncoderCache cache_{10};
  WindowPlan first_;
};

TEST_F(Preemption, LeavesTheRowsForTheResumption) {
  EXPECT_EQ(first_, expected({0, 1}, 12, 90));
  EXPECT_EQ(state_of(cache_), (CacheState{0, 0, {}}));
  cache_.release_all(r_);
  EXPECT_EQ(state_of(cache_), (CacheState{0, 10, {"a", "b"}}));
  EXPECT_EQ(run(cache_, r_, window(0, 12), 100), expected({}, 12, 100));
  EXPECT_EQ(state_of(cache_), (CacheState{0, 0, {}}));
}

TEST_F(Preemption, LetsAnotherRequestEvictThem) {
  cache_.release_all(r_);
  const CacheRequest q{"q", {item_at("c", 0, 5)}};
  EXPECT_EQ(run(cache_, q, window(0, 5), 100), expected({0}, 5, 95));
  EXPECT_EQ(cache_.drain_evicted(), std::vector<std::string>{"a"});
  EXPECT_EQ(state_of(cache_), (CacheState{1, 5, {"b"}}));

  const WindowPlan resumed = plan_window(cache_, r_, window(0, 12), kBudget100);
  EXPECT_EQ(resumed, expected({}, 0, 100));
  EXPECT_EQ(resumed.rows_waited_for, 6);
  EXPECT_EQ(state_of(cache_), (CacheState{1, 5, {"b"}})) << "b gains no holder";
}

TEST(PlanWindow, RefusesWhatIsNoWindow) {
  EncoderCache cache(100);
  const CacheRequest request{"r", {item_at("a", 4, 4)}};
  const auto refuse = [&](IndexRange positions, const WindowLimits& limits) {
    expect_error(ErrorCode::kInvalidArgument,
                 "request r: ", [&] { (void)plan_window(cache, request, positions, limits); });
  };
  refuse({8, 4}, kBudget100);
  refuse({-4, 8}, kBudget100);
  refuse(window(0, 8), {.compute_budget = 100, .look_ahead = -1});
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  refuse(window(0, 8), {.compute_budget = 100, .look_ahead = kMost});
  EXPECT_EQ(state_of(cache), (CacheState{100, 100, {}}));
}

TEST(FindDeadlock, SaysWhatIsMissingWhenNobodyMoves) {
  EncoderCache cache(10);
  cache.allocate(request_of("q", "x", 8), 0);
  const auto plan_of = [&](std::int64_t rows, std::int64_t budget) {
    return plan_window(cache, request_of("r", "y", rows), window(0, 20),
                       {.compute_budget = budget});
  };
  const std::vector<WindowPlan> stuck{plan_of(5, 100), plan_of(4, 100)};
  const auto deadlock = find_deadlock(cache, stuck);
  ASSERT_TRUE(deadlock);
  EXPECT_EQ(deadlock->rows_needed, 4);
  EXPECT_EQ(deadlock->rows_freeable, 2);

  EXPECT_FALSE(find_deadlock(cache, std::vector{plan_of(5, 100), plan_of(2, 100)}))
      << "one of them moves";
  EXPECT_FALSE(find_deadlock(cache, std::vector{plan_of(5, 3)})) << "it waits for the next step";
  EXPECT_FALSE(find_deadlock(cache, {}));
}

}  // namespace
}  // namespace fovea
