// Every item is counted once: encoder graph specification, section 9.
#include "graph/graph_stats.h"

#include <gtest/gtest.h>

#include <set>

#include "graph/harness.h"
#include "graph/recording_log.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using namespace test;  // NOLINT: the harness is written for these tests

// --- counters ---

TEST_F(GraphManagerTest, HitRateIsTheShareOfReplayedItems) {
  EXPECT_EQ(stats().hit_rate(), 0.0);
  (void)h.encode(batch({{1, 4, 4}, {1, 4, 4}, {1, 4, 4}}));
  EXPECT_EQ(stats().hit_rate(), 1.0);
  (void)h.encode(batch({{1, 18, 18}}));
  EXPECT_EQ(stats().hit_rate(), 0.75);
}

TEST(GraphManager, HitRateIsZeroWithoutGraphs) {
  MockHarness h = make_mock();
  (void)h.encode(mock_batch(h.model, {{1, 4, 4}}));
  EXPECT_EQ(h.manager.stats().hit_rate(), 0.0);
}

TEST(GraphManager, BudgetsAreListedBeforeTheirCapture) {
  MockHarness h = make_mock();
  const Stats s = h.manager.stats();
  EXPECT_EQ(s.num_budgets, 0);
  EXPECT_EQ(s.token_budgets, (std::vector<std::int64_t>{16, 64}));
  EXPECT_EQ(s.paths[0].token_budgets, (std::vector<std::int64_t>{16, 64}));
}

TEST(GraphManager, EveryHundredItemsAreLogged) {
  RecordingLog log;
  GraphManagerOptions options = small_options();
  options.log = &log;
  MockHarness h = make_mock({}, options);
  h.manager.capture();
  for (int i = 0; i < 33; ++i)
    (void)h.encode(mock_batch(h.model, {{1, 2, 2}, {1, 2, 2}, {1, 2, 2}}));
  EXPECT_EQ(log.count("encoder_graphs.stats"), 0);  // 99 items
  (void)h.encode(mock_batch(h.model, {{1, 2, 2}, {1, 2, 2}, {1, 2, 2}}));
  EXPECT_EQ(log.count("encoder_graphs.stats hits=102"), 1);
  (void)h.encode(mock_batch(h.model, {{1, 2, 2}}));
  EXPECT_EQ(log.count("encoder_graphs.stats"), 1);
}

TEST_F(GraphManagerTest, PaddingIsCounted) {
  (void)h.encode(batch({{1, 4, 4}}));    // 4 tokens in 16
  (void)h.encode(batch({{1, 10, 10}}));  // 25 tokens in 64
  const Stats s = stats();
  EXPECT_EQ(s.paths[0].live_rows, 29);
  EXPECT_EQ(s.paths[0].padded_rows, 12 + 39);
}

TEST_F(GraphManagerTest, ARunWithWorkTakesTimeToPack) {
  const Batch items = batch({{1, 4, 4}, {1, 18, 18}});
  const OutputRows out(*h.device, items, h.model.graph_spec().out_width);
  EXPECT_GT(h.manager.execute(items.pointers(), out.views()).packing_ms, 0);
  EXPECT_GT(h.manager.execute_eager(items.pointers(), out.views()).packing_ms, 0);
  EXPECT_EQ(h.manager.execute({}, {}).packing_ms, 0);
}

TEST_F(GraphManagerTest, ACallerLearnsHowEachItemRan) {
  const Batch items = batch({{1, 18, 18}, {1, 4, 4}, {1, 2, 2}});  // the first is oversized
  const OutputRows out(*h.device, items, h.model.graph_spec().out_width);
  std::vector<ItemUse> uses(3, {.graph = GraphUse::kPartial, .units_reused = 1});
  const auto graphs = [&] {
    std::vector<GraphUse> all;
    for (const ItemUse& use : uses) all.push_back(use.graph);
    return all;
  };
  h.manager.execute(items.pointers(), out.views(), {.uses = uses});
  EXPECT_EQ(graphs(), (std::vector{GraphUse::kMiss, GraphUse::kHit, GraphUse::kHit}));
  EXPECT_EQ(uses[0].units_reused, 0);
  h.manager.execute_eager(items.pointers(), out.views(), {.uses = uses});
  EXPECT_EQ(graphs(), std::vector(3, GraphUse::kMiss));
  uses.pop_back();
  expect_error(ErrorCode::kInvalidArgument, "3 items have as many uses of graphs, got room for 2",
               [&] { h.manager.execute(items.pointers(), out.views(), {.uses = uses}); });
}

TEST(GraphStats, AnItemIsPartlyReplayedIfSomeOfItsUnitsRanEagerly) {
  GraphStats::ItemRuns runs;
  runs.add(0, std::nullopt);
  EXPECT_EQ(runs.use(), GraphUse::kHit);
  runs.add(1, MissReason::kSlower);
  EXPECT_EQ(runs.use(), GraphUse::kPartial);
  GraphStats::ItemRuns eager;
  eager.add(0, MissReason::kSlower);
  EXPECT_EQ(eager.use(), GraphUse::kMiss);
  eager.add(0, std::nullopt);
  EXPECT_EQ(eager.use(), GraphUse::kPartial) << "two parts of one path";
}

TEST(GraphStats, AnItemCountsWithTheReasonOfTheFirstPathThatRanEagerly) {
  GraphStats stats(GraphSpec{});
  GraphStats::ItemRuns runs;
  runs.add(1, MissReason::kFrames);
  runs.add(0, MissReason::kSlower);
  runs.add(0, MissReason::kOversized);
  stats.count_item(runs);
  EXPECT_EQ(stats.snapshot().miss_reasons, (std::map<std::string, std::int64_t>{{"slower", 1}}));
}

TEST(GraphStats, EveryReasonHasAName) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kNumMissReasons; ++i) {
    names.insert(to_string(static_cast<MissReason>(i)));
  }
  EXPECT_EQ(names.size(), kNumMissReasons);
  EXPECT_FALSE(names.contains("unknown"));
}

// --- eager on purpose ---

TEST(GraphManager, DisabledGraphsCaptureNothingAndRunEagerly) {
  GraphManagerOptions options;
  options.user.cudagraph_mm_encoder = false;
  options.max_num_batched_tokens = 32;
  MockHarness h = make_mock({}, options);
  h.manager.capture();
  EXPECT_FALSE(h.manager.is_captured());
  h.expect_right(mock_batch(h.model, {{1, 8, 8}, {1, 8, 8}, {1, 18, 18}, {1, 2, 2}}));
  EXPECT_EQ(h.manager.stats().miss_reasons.at("disabled"), 4);
  EXPECT_EQ(h.manager.stats().sub_batches, 3);  // cut at 32 tokens; what is larger runs alone
  EXPECT_TRUE(h.manager.stats().paths[0].token_budgets.empty());
}

TEST_F(GraphManagerTest, EagerRunsOnRequestAreCountedAsSuch) {
  const Batch one = batch({{1, 4, 4}});
  EXPECT_TRUE(same_bits(h.encode_eager(one)[0], h.model.reference(one.items()[0])));
  EXPECT_EQ(stats().miss_reasons, (std::map<std::string, std::int64_t>{{"requested", 1}}));
}

TEST(GraphManager, BytePixelsAreNormalisedByTheForward) {
  MockHarness h = make_mock({.byte_pixels = true});
  h.manager.capture();
  h.expect_right(mock_batch(h.model, {{1, 4, 4}, {2, 4, 4}, {1, 18, 18}}));
  EXPECT_EQ(h.manager.stats().graph_hits, 2);
}

}  // namespace
}  // namespace fovea
