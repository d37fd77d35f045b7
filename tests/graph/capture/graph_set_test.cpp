// What is captured when, what replays it, and the memory it takes.
#include "graph/capture/graph_set.h"

#include <gtest/gtest.h>

#include <array>

#include "graph/harness.h"
#include "graph/recording_log.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using namespace test;  // NOLINT: the harness is written for these tests

// --- capture ---

TEST_F(GraphManagerTest, CapturesOneGraphPerBudgetLargestFirst) {
  EXPECT_EQ(h.manager.captured_keys(), (std::vector<GraphKey>{{.budget = 64}, {.budget = 16}}));
  EXPECT_TRUE(h.manager.is_captured());
  EXPECT_EQ(stats().num_budgets, 2);
  h.manager.capture();  // nothing is missing
  EXPECT_EQ(stats().num_budgets, 2);
}

TEST_F(GraphManagerTest, ClearedGraphsAreNotReplayed) {
  h.manager.clear();
  EXPECT_FALSE(h.manager.is_captured());
  EXPECT_TRUE(h.manager.captured_keys().empty());
  EXPECT_EQ(h.manager.memory().graphs(), 0u);
  h.expect_right(batch({{1, 4, 4}}));
  EXPECT_EQ(stats().miss_reasons, (std::map<std::string, std::int64_t>{{"not_captured", 1}}));
}

TEST_F(GraphManagerTest, CaptureAfterClearServesAgain) {
  h.manager.clear();
  h.manager.capture();
  h.expect_right(batch({{1, 4, 4}}));
  EXPECT_EQ(stats().graph_hits, 1);
}

TEST(GraphSet, ASmallBudgetIsBuiltForAsManySequencesAsFit) {
  const MockModel model;
  const auto kernels = make_cpu_kernels(CpuIsa::kPortable, 1);
  const auto device = make_cpu_device(1, *kernels);
  Lane lane(*device);
  GraphConfig config;
  config.path_budgets = {{16, 64}};
  config.max_items = 20;
  config.max_seqs = 40;
  GraphSet graphs(model, config, lane);
  const GraphKey small{.budget = 16};
  const GraphKey large{.budget = 64};
  (void)graphs.ensure(std::array{large, small});
  EXPECT_EQ(graphs.find(small)->capacity(), (GraphCapacity{.tokens = 16, .items = 16, .seqs = 16}));
  EXPECT_EQ(graphs.find(large)->capacity(), (GraphCapacity{.tokens = 64, .items = 20, .seqs = 40}));
}

std::vector<std::int64_t> recorded_tokens(const Device& device, const GraphKey& key,
                                          std::int64_t unit = 1) {
  GraphConfig config;
  config.path_budgets = {{16, 64, 90}, {0, 64}};
  config.max_items = 20;
  config.max_seqs = 40;
  const GraphSpec spec{.paths = {{.name = "a"}, {.name = "b", .unit = unit}}};
  std::vector<std::int64_t> tokens;
  for (const GraphCapacity& size : recorded_sizes(spec, config, key, device)) {
    tokens.push_back(size.tokens);
  }
  EXPECT_EQ(recorded_sizes(spec, config, key, device).back(), graph_capacity(spec, config, key));
  return tokens;
}

TEST(RecordedSizes, AreEighthsOfTheBudgetAboveTheNextSmallerOneOnAGpu) {
  using Tokens = std::vector<std::int64_t>;
  const auto kernels = make_cpu_kernels(CpuIsa::kPortable, 1);
  const DeferredDevice gpu(*kernels, Schedule::kLast);
  EXPECT_EQ(recorded_tokens(gpu, {.budget = 16}), (Tokens{2, 4, 6, 8, 10, 12, 14, 16}));
  EXPECT_EQ(recorded_tokens(gpu, {.budget = 64}), (Tokens{24, 32, 40, 48, 56, 64}));
  EXPECT_EQ(recorded_tokens(gpu, {.budget = 90}), (Tokens{67, 78, 90}));
  EXPECT_EQ(recorded_tokens(gpu, {.path = 1, .budget = 64}),
            (Tokens{8, 16, 24, 32, 40, 48, 56, 64}));
  EXPECT_EQ(recorded_tokens(gpu, {.path = 1, .budget = 64}, 20), (Tokens{20, 40, 60}));
}

TEST(RecordedSizes, AreThatOfTheBudgetAloneOnACpu) {
  const auto kernels = make_cpu_kernels(CpuIsa::kPortable, 1);
  const auto cpu = make_cpu_device(1, *kernels);
  EXPECT_EQ(recorded_tokens(*cpu, {.budget = 16}), std::vector<std::int64_t>{16});
}

// --- capture on demand ---

TEST(GraphManager, CapturesOnDemand) {
  GraphManagerOptions options = small_options();
  options.missing = MissingGraph::kCapture;
  MockHarness h = make_mock({}, options);
  h.expect_right(mock_batch(h.model, {{1, 4, 4}}));
  EXPECT_EQ(h.manager.captured_keys(), (std::vector<GraphKey>{{.budget = 16}}));
  const std::size_t small_arena = h.manager.memory().arena;
  h.expect_right(mock_batch(h.model, {{1, 16, 16}}));  // memory grows: the small graph moves along
  EXPECT_GT(h.manager.memory().arena, small_arena);
  EXPECT_EQ(h.manager.stats().num_budgets, 2);
  h.expect_right(mock_batch(h.model, {{1, 4, 4}}, 5));
  EXPECT_EQ(h.manager.stats().graph_hits, 3);
  EXPECT_EQ(h.manager.stats().graph_misses, 0);
}

TEST(GraphManager, WarmUpSeesNoLeftoversOfEarlierRuns) {
  GraphManagerOptions options = small_options();
  options.missing = MissingGraph::kCapture;
  MockHarness h = make_mock({}, options);
  h.expect_right(mock_batch(h.model, {{1, 16, 16}}));
  h.expect_right(mock_batch(h.model, {{1, 4, 4}}));  // captures while old inputs lie in the block
  EXPECT_EQ(h.model.rows_run(), 256 + 16);           // what the two items have, and nothing more
}

// --- memory ---

TEST_F(GraphManagerTest, MemoryIsAccountedExactly) {
  const GraphMemoryReport report = h.manager.memory();
  EXPECT_EQ(report.arena + report.inputs + report.outputs, h.device->allocated_bytes());
  EXPECT_EQ(static_cast<std::size_t>(stats().graph_bytes), report.graphs());
  EXPECT_EQ(report.host, 0u);
  EXPECT_GT(report.recordings, 0u);
}

TEST_F(GraphManagerTest, EveryGraphSaysWhatItTook) {
  const std::vector<GraphReport> graphs = stats().graphs;
  ASSERT_EQ(graphs.size(), 2u);
  EXPECT_EQ(graphs[0].budget, 64);
  EXPECT_EQ(graphs[1].budget, 16);
  std::int64_t recordings = 0;
  for (const GraphReport& graph : graphs) {
    EXPECT_EQ(graph.path, "default");
    EXPECT_GT(graph.capture_ms, 0);
    EXPECT_EQ(graph.replay_ms, 0);  // not measured
    recordings += graph.recording_bytes;
  }
  const GraphMemoryReport report = h.manager.memory();
  EXPECT_EQ(static_cast<std::size_t>(recordings), report.recordings);
  // The largest graph sizes the shared memory, the other one uses a part of it.
  EXPECT_EQ(static_cast<std::size_t>(graphs[0].shared_bytes),
            report.arena + report.inputs + report.outputs);
  EXPECT_LT(graphs[1].shared_bytes, graphs[0].shared_bytes);
}

TEST_F(GraphManagerTest, AllGraphsShareTheMemoryOfTheLargest) {
  GraphManagerOptions options = small_options();
  options.user.encoder_cudagraph_token_budgets = {64};
  MockHarness alone = make_mock({}, options);
  alone.manager.capture();
  EXPECT_EQ(h.manager.memory().arena, alone.manager.memory().arena);
  EXPECT_EQ(h.manager.memory().inputs, alone.manager.memory().inputs);
  EXPECT_EQ(h.manager.memory().outputs, alone.manager.memory().outputs);
}

TEST_F(GraphManagerTest, ReplaysAllocateNothing) {
  const Batch items = batch({{1, 4, 4}, {2, 2, 2}});
  const OutputRows out(*h.device, items, 32);
  h.manager.execute(items.pointers(), out.views());
  const std::size_t bytes = h.device->allocated_bytes();
  for (int i = 0; i < 10'000; ++i) h.manager.execute(items.pointers(), out.views());
  EXPECT_EQ(h.device->allocated_bytes(), bytes);
  EXPECT_EQ(stats().graph_hits, 2 * 10'001);
}

TEST(GraphManager, RowsAreTheSameAfterALargerReplay) {
  GraphManagerOptions options;
  options.user.encoder_cudagraph_token_budgets = {512,  1024, 1536, 2048, 2560,
                                                  3072, 3584, 4096, 4864};
  options.user.encoder_cudagraph_max_vision_items_per_batch = 8;
  MockHarness h = make_mock({.hidden = 8, .width = 8}, options);
  h.manager.capture();
  const Batch canary = mock_batch(h.model, {{1, 16, 16}}, 3);  // 64 tokens
  const auto first = h.encode(canary);
  h.expect_right(canary);
  h.expect_right(mock_batch(h.model, {{1, 52, 92}}, 4));  // 1196 tokens
  EXPECT_EQ(h.encode(canary), first);
  EXPECT_EQ(h.manager.stats().graph_misses, 0);
}

}  // namespace
}  // namespace fovea
