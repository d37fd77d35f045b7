// Measured costs, with a clock that the model moves.
#include "graph/capture/calibration.h"

#include <gtest/gtest.h>

#include <thread>

#include "graph/capture/graph_set.h"
#include "graph/harness.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using namespace test;  // NOLINT: the harness is written for these tests

TEST(Calibration, FillsAGraphWithEqualImages) {
  const MockModel model;
  const auto one = filling_items(model, 0, {.tokens = 64, .items = 4, .seqs = 4});
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].plan.spec.out_rows, 64);
  EXPECT_EQ(one[0].pixels.size(), one[0].plan.pixel_bytes);
  // 256 tokens each in all graphs, so that none has a larger share of attention.
  for (const std::int64_t images : {1, 2, 4, 16}) {
    const auto some = filling_items(model, 0, {.tokens = 256 * images, .items = 16, .seqs = 16});
    ASSERT_EQ(std::ssize(some), images);
    EXPECT_EQ(some[0].plan.spec.out_rows, 256);
  }
  // Not one of 256: a load of two thirds would say little about a full one.
  const auto two = filling_items(model, 0, {.tokens = 384, .items = 8, .seqs = 8});
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(two[0].plan.spec.out_rows, 192);
}

TEST(Calibration, FewImagesAreAsLargeAsItTakesToFillAGraph) {
  const MockModel model;
  const auto three = filling_items(model, 0, {.tokens = 4096, .items = 3, .seqs = 8});
  ASSERT_EQ(three.size(), 3u);
  EXPECT_EQ(three[0].plan.spec.out_rows, 1365);  // a third, rounded down
  const auto one = filling_items(model, 0, {.tokens = 8192, .items = 1, .seqs = 1});
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].plan.spec.out_rows, 8192);
}

TEST(Calibration, FillsEachPathByItself) {
  const DualModel model;
  const auto pages = filling_items(model, 0, {.tokens = 544, .items = 8, .seqs = 8});
  EXPECT_EQ(pages.size(), 2u);
  // An image has no tile or at least two.
  EXPECT_EQ(filling_items(model, 1, {.tokens = 300, .items = 8, .seqs = 8}).size(), 1u);
  EXPECT_TRUE(filling_items(model, 1, {.tokens = 100, .items = 8, .seqs = 8}).empty());
}

TEST(Calibration, EagerMustWinByMoreThanNoise) {
  EXPECT_TRUE(eager_is_faster({.replay_ms = 10, .eager_ms = 9.8}, 64));
  EXPECT_FALSE(eager_is_faster({.replay_ms = 10, .eager_ms = 9.95}, 64));
  EXPECT_FALSE(eager_is_faster({.replay_ms = 10, .eager_ms = 12}, 64));
}

TEST(Calibration, EagerMayWinWhereTheGraphIsHalfEmpty) {
  // Replays cost the same whatever the load: eager execution is faster below 50 of 64 tokens.
  const GraphTimes times{.replay_ms = 10,
                         .eager_ms = 12,
                         .tokens = 64,
                         .low = {.tokens = 32, .replay_ms = 10, .eager_ms = 6}};
  for (const std::int64_t load : {1, 32, 50}) EXPECT_TRUE(eager_is_faster(times, load)) << load;
  for (const std::int64_t load : {54, 64, 70}) EXPECT_FALSE(eager_is_faster(times, load)) << load;
}

/// Times of the graph of a budget, which takes as long as an eager run, on `model` whose clock is
/// read through `now_ms`.
GraphTimes times_of_a_tie(const MockModel& model, const std::function<double()>& now_ms,
                          std::int64_t budget = 16) {
  const auto kernels = make_cpu_kernels(CpuIsa::kPortable, 1);
  const auto device = make_cpu_device(1, *kernels);
  Lane lane(*device);
  EagerRunner eager(model, lane);
  GraphConfig config;
  config.max_items = 4;
  config.max_seqs = 4;
  GraphSet graphs(model, config, lane);
  const GraphKey key{.budget = budget};
  const auto captured = graphs.ensure({&key, 1});
  return *time_graph(
      {.model = model, .lane = lane, .memory = graphs.memory(), .eager = eager, .now_ms = now_ms},
      *captured[0]);
}

TEST(Calibration, DriftingClocksMeetReplaysAndEagerRunsAlike) {
  const auto clock = std::make_shared<double>(0);
  const MockModel model({.clock_ms = clock});
  const double warm = *clock + 2 * 16 + 2 * 16;  // capture's rehearsals, then one run of each kind
  const GraphTimes times = times_of_a_tie(model, [&] {
    const double slow = std::max(*clock - (warm + 2 * 16), 0.0);  // from the second turn on
    return *clock + slow;
  });
  EXPECT_EQ(times.replay_ms, 16);
  EXPECT_EQ(times.eager_ms, 16);
}

TEST(Calibration, EveryEagerRunPaysForItsSizing) {
  const auto clock = std::make_shared<double>(0);
  const MockModel model({.clock_ms = clock, .launch_ms = 5});
  const GraphTimes times = times_of_a_tie(model, [&] { return *clock; });
  EXPECT_EQ(times.replay_ms, 16);
  EXPECT_EQ(times.eager_ms, 16 + 5 + 5);
}

TEST(Calibration, AGraphOfOneTokenIsTimedAtThatLoadAlone) {
  const auto clock = std::make_shared<double>(0);
  const MockModel model({.clock_ms = clock});
  const GraphTimes times = times_of_a_tie(
      model, [&] { return *clock; }, 1);
  EXPECT_EQ(times.tokens, 1);
  EXPECT_EQ(times.replay_ms, 1);
  EXPECT_EQ(times.low.tokens, 0);
  EXPECT_FALSE(eager_is_faster(times, 1));
}

TEST(Calibration, CostsAreMeasuredTimesAndProportionalElsewhere) {
  const std::vector<std::vector<std::int64_t>> budgets{{16, 64}, {0, 20}};
  const std::vector<GraphTimes> times{
      {.key = {.budget = 16}, .replay_ms = 2, .eager_ms = 4, .tokens = 12},
      {.key = {.budget = 64}, .replay_ms = 6, .eager_ms = 5, .tokens = 60}};
  const PackingCosts costs = measured_costs(budgets, times);
  EXPECT_EQ(costs.paths[0].replay[0].at(12), 2);  // the better of both ways
  EXPECT_EQ(costs.paths[0].replay[1].at(60), 5);
  EXPECT_DOUBLE_EQ(costs.paths[1].replay[1].at(20), 20 * 8.0 / 80);  // 8 ms for 80 tokens
  EXPECT_DOUBLE_EQ(costs.paths[0].eager_per_token, 9.0 / 72);        // of the items, not the graphs
  EXPECT_EQ(measured_costs(budgets, {}).paths[0].replay[1].at(20), 64);
}

TEST(Calibration, CostsFollowTheLoad) {
  const std::vector<std::vector<std::int64_t>> budgets{{64}};
  const std::vector<GraphTimes> times{{.key = {.budget = 64},
                                       .replay_ms = 10,
                                       .eager_ms = 12,
                                       .tokens = 64,
                                       .low = {.tokens = 32, .replay_ms = 8, .eager_ms = 6}}};
  const LoadCost cost = measured_costs(budgets, times).paths[0].replay[0];
  EXPECT_EQ(cost.at(1), 6);  // the better way under half the load
  EXPECT_EQ(cost.at(32), 6);
  EXPECT_EQ(cost.at(48), 8);
  EXPECT_EQ(cost.at(64), 10);
}

GraphManagerOptions measuring(const std::shared_ptr<double>& clock) {
  GraphManagerOptions options = small_options();
  options.user.encoder_cudagraph_token_budgets = {16, 90};
  options.measure = true;
  options.clock_ms = [clock] { return *clock; };
  return options;
}

TEST(Calibration, GraphsSlowerThanEagerAreNotReplayed) {
  const auto clock = std::make_shared<double>(0);
  MockHarness h(MockModel({.clock_ms = clock}), measuring(clock));
  h.manager.capture();
  // Full graphs tie; a replay of 90 or 16 takes as long half empty, an eager run half the time.
  h.expect_right(mock_batch(h.model, {{1, 8, 8}}));  // 16 tokens
  EXPECT_EQ(h.manager.stats().graph_hits, 1);
  h.expect_right(mock_batch(h.model, {{1, 4, 4}}));  // 4 tokens in a graph of 16
  EXPECT_EQ(h.manager.stats().graph_hits, 1);
  EXPECT_EQ(h.manager.stats().graphs[0].replay_ms, 90);
  EXPECT_EQ(h.manager.stats().graphs[0].eager_ms, 90);
  h.expect_right(mock_batch(h.model, {{1, 10, 10}}));  // 25 tokens in a graph of 90
  EXPECT_EQ(h.manager.stats().miss_reasons.at("slower"), 2);
}

TEST(Calibration, GraphsThatSaveLaunchesAreReplayed) {
  const auto clock = std::make_shared<double>(0);
  MockHarness h(MockModel({.clock_ms = clock, .launch_ms = 20}), measuring(clock));
  h.manager.capture();
  h.expect_right(mock_batch(h.model, {{1, 4, 4}, {1, 18, 18}}));
  EXPECT_EQ(h.manager.stats().graph_misses, 0);
  EXPECT_EQ(h.manager.memory().eager, 0u);  // what measuring had used is given back
}

TEST(Calibration, MeasuresGraphsCapturedOnDemand) {
  const auto clock = std::make_shared<double>(0);
  GraphManagerOptions options = measuring(clock);
  options.missing = MissingGraph::kCapture;
  MockHarness h(MockModel({.clock_ms = clock}), options);
  h.expect_right(mock_batch(h.model, {{1, 10, 10}, {1, 2, 2}}));
  EXPECT_EQ(h.manager.stats().miss_reasons.at("slower"), 2);
}

/// What a first manager hands out after its capture.
std::vector<GraphTimes> times_of(const GraphManagerOptions& options,
                                 const std::shared_ptr<double>& clock) {
  std::vector<GraphTimes> stored;
  GraphManagerOptions storing = options;
  storing.store_times = [&](std::span<const GraphTimes> times) {
    stored.assign(times.begin(), times.end());
  };
  MockHarness h(MockModel({.clock_ms = clock}), storing);
  h.manager.capture();
  return stored;
}

TEST(StoredTimes, AreUsedAndNotMeasuredAgain) {
  const auto clock = std::make_shared<double>(0);
  GraphManagerOptions options = measuring(clock);
  options.stored_times = times_of(options, clock);
  ASSERT_EQ(options.stored_times.size(), 2u);
  options.stored_times[0].replay_ms = 70;  // not what measuring gives
  int calls = 0;
  options.store_times = [&](std::span<const GraphTimes>) { ++calls; };
  MockHarness first(MockModel({.clock_ms = clock}), measuring(clock));
  first.manager.capture();
  MockHarness h(MockModel({.clock_ms = clock}), options);
  h.manager.capture();
  EXPECT_LT(h.model.forwards_run(), first.model.forwards_run());
  const Stats stats = h.manager.stats();
  ASSERT_EQ(stats.graphs.size(), 2u);
  for (const GraphReport& graph : stats.graphs) EXPECT_TRUE(graph.stored_times) << graph.budget;
  EXPECT_EQ(stats.graphs[0].replay_ms, 70);
  EXPECT_EQ(stats.graphs[0].eager_ms, 90);
  EXPECT_EQ(calls, 0);  // nothing is new
  h.expect_right(mock_batch(h.model, {{1, 18, 18}}));
  h.expect_right(mock_batch(h.model, {{1, 4, 4}}));  // as measured: eager is faster
  EXPECT_EQ(h.manager.stats().graph_hits, 1);
  EXPECT_EQ(h.manager.stats().miss_reasons.at("slower"), 1);
}

TEST(StoredTimes, LeaveTheMemoryOfEagerRunsAlone) {
  const auto clock = std::make_shared<double>(0);
  GraphManagerOptions options = measuring(clock);
  options.stored_times = times_of(options, clock);
  MockHarness h(MockModel({.clock_ms = clock}), options);
  (void)h.encode_eager(mock_batch(h.model, {{1, 4, 4}}));
  const std::size_t bytes = h.manager.memory().eager;
  EXPECT_GT(bytes, 0u);
  h.manager.capture();
  EXPECT_EQ(h.manager.memory().eager, bytes);
}

TEST(StoredTimes, OfOtherCapacitiesAreKeptBesideNewOnes) {
  const auto clock = std::make_shared<double>(0);
  GraphManagerOptions options = measuring(clock);
  options.stored_times = times_of(options, clock);
  options.user.encoder_cudagraph_token_budgets = {16, 64};
  const std::vector<GraphTimes> all = times_of(options, clock);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].capacity.tokens, 90);
  EXPECT_EQ(all[1].capacity.tokens, 16);
  EXPECT_EQ(all[2].capacity.tokens, 64);
  EXPECT_TRUE(all[1].stored);
  EXPECT_FALSE(all[2].stored);
  // The same tokens for fewer items are another graph.
  options.user.encoder_cudagraph_max_vision_items_per_batch = 2;
  EXPECT_EQ(times_of(options, clock).size(), 4u);
}

TEST(StoredTimes, LeaveTheBackgroundOnce) {
  const auto clock = std::make_shared<double>(0);
  GraphManagerOptions options = measuring(clock);
  std::vector<std::size_t> counts;
  options.store_times = [&](std::span<const GraphTimes> times) { counts.push_back(times.size()); };
  MockHarness h(MockModel({.clock_ms = clock}), options);
  h.manager.capture_in_background();
  h.manager.wait_for_background();
  h.manager.capture();  // there is nothing left to do
  EXPECT_EQ(counts, (std::vector<std::size_t>{2}));
}

TEST(StoredTimes, LeaveACaptureThatIsCutShort) {
  const auto clock = std::make_shared<double>(0);
  std::size_t stored = 0;
  {
    GraphManagerOptions options = measuring(clock);
    options.store_times = [&](std::span<const GraphTimes> times) { stored = times.size(); };
    MockHarness h(MockModel({.clock_ms = clock}), options);
    h.manager.capture_in_background();
    while (h.manager.captured_keys().empty()) std::this_thread::yield();
  }
  EXPECT_GE(stored, 1u);
}

TEST(StoredTimes, MeanNothingWithoutMeasuring) {
  const auto clock = std::make_shared<double>(0);
  GraphManagerOptions options = measuring(clock);
  options.stored_times = times_of(options, clock);
  options.measure = false;
  MockHarness h(MockModel({.clock_ms = clock}), options);
  h.manager.capture();
  EXPECT_EQ(h.manager.stats().graphs[0].replay_ms, 0);
  h.expect_right(mock_batch(h.model, {{1, 8, 8}, {1, 4, 4}}));
  EXPECT_EQ(h.manager.stats().graph_misses, 0);
}

}  // namespace
}  // namespace fovea
