// Capture on a thread of its own while batches are served.
#include <gtest/gtest.h>

#include "graph/capture/graph_set.h"
#include "graph/harness.h"
#include "graph/recording_log.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using namespace test;  // NOLINT: the harness is written for these tests

TEST(BackgroundCapture, ServesMeanwhileAndThenReplays) {
  RecordingLog log;
  GraphManagerOptions options = small_options();
  options.log = &log;
  MockHarness h(MockModel{}, options);
  h.manager.capture_in_background();
  for (std::uint64_t i = 0; i < 50; ++i) {
    h.expect_right(mock_batch(h.model, {{1, 4, 4}, {1, 8, 8}, {2, 6, 6}}, i));
  }
  h.manager.wait_for_background();
  EXPECT_EQ(log.count("encoder_graphs.not_captured"), 0)
      << "graphs on their way are nothing to warn about";
  EXPECT_EQ(h.manager.captured_keys(), (std::vector<GraphKey>{{.budget = 64}, {.budget = 16}}));
  const std::int64_t misses = h.manager.stats().graph_misses;
  h.expect_right(mock_batch(h.model, {{1, 4, 4}}));
  EXPECT_EQ(h.manager.stats().graph_misses, misses);
}

TEST(BackgroundCapture, LogsEveryGraphAndTheEnd) {
  RecordingLog log;
  GraphManagerOptions options = small_options();
  options.log = &log;
  MockHarness h(MockModel{}, options);
  h.manager.capture_in_background();
  h.manager.wait_for_background();
  EXPECT_EQ(log.count("encoder_graphs.graph path=default budget=64 ms="), 1);
  EXPECT_EQ(log.count("encoder_graphs.graph path=default budget=16 ms="), 1);
  EXPECT_EQ(log.count("encoder_graphs.captured count=2"), 1);
}

TEST(BackgroundCapture, EndsWithTheManager) {
  for (int i = 0; i < 20; ++i) {
    MockHarness h(MockModel{}, small_options());
    h.manager.capture_in_background();
  }
}

TEST(BackgroundCapture, KeepsGraphsCapturedBefore) {
  GraphManagerOptions options = small_options();
  options.missing = MissingGraph::kCapture;
  MockHarness h(MockModel{}, options);
  h.expect_right(mock_batch(h.model, {{1, 4, 4}}));  // small memory, which has to move
  h.manager.capture_in_background();
  h.manager.wait_for_background();
  EXPECT_EQ(h.manager.stats().num_budgets, 2);
  h.expect_right(mock_batch(h.model, {{1, 4, 4}, {1, 14, 14}}));
  EXPECT_EQ(h.manager.stats().graph_misses, 0);
}

TEST(BackgroundCapture, FailureReachesWhoWaits) {
  RecordingLog log;
  GraphManagerOptions options = small_options();
  options.log = &log;
  MockHarness h(MockModel({.declare_twice = true}), options);
  h.manager.capture_in_background();
  expect_error(ErrorCode::kInternal, "two inputs are named \"live\"",
               [&] { h.manager.wait_for_background(); });
  EXPECT_NO_THROW(h.manager.wait_for_background());
  EXPECT_EQ(log.count("capture_failed"), 1);
}

GraphManagerOptions options_without_graphs(LogSink* log = nullptr) {
  GraphManagerOptions options;
  options.user.cudagraph_mm_encoder = false;
  options.max_num_batched_tokens = 512;
  options.log = log;
  return options;
}

TEST(BackgroundRehearsal, RunsTheForwardAtEverySizeWhereThereAreNoGraphs) {
  RecordingLog log;
  MockHarness h(MockModel{}, options_without_graphs(&log));
  h.manager.capture_in_background();
  h.manager.wait_for_background();
  // 12, 16, 24, 32 and so on up to 512 tokens
  EXPECT_EQ(h.model.forwards_recorded(), 12);
  EXPECT_EQ(log.count("eager_runs.rehearsed sizes=12 "), 1);
  EXPECT_FALSE(h.manager.is_captured());
  EXPECT_EQ(h.manager.memory().eager, 0u) << "sizes of requests need less";
}

TEST(BackgroundRehearsal, ServesMeanwhile) {
  MockHarness h(MockModel{}, options_without_graphs());
  h.manager.capture_in_background();
  for (std::uint64_t i = 0; i < 50; ++i) {
    h.expect_right(mock_batch(h.model, {{1, 4, 4}, {1, 8, 8}, {2, 6, 6}}, i));
  }
  h.manager.wait_for_background();
  h.expect_right(mock_batch(h.model, {{1, 14, 14}}));
}

TEST(BackgroundRehearsal, EndsWithTheManager) {
  for (int i = 0; i < 20; ++i) {
    MockHarness h(MockModel{}, options_without_graphs());
    h.manager.capture_in_background();
  }
}

TEST(BackgroundRehearsal, SizesAreWholeUnitsUpToTheLargestThatARunMayHave) {
  GraphSpec spec;
  spec.min_token_budget = 64;
  spec.max_token_budget = 1000;
  spec.paths = {PathSpec{.name = "tiles", .unit = 256}};
  std::vector<std::int64_t> tokens;
  for (const GraphCapacity& size : rehearsed_sizes(spec, eager_config(spec, 4096), 0)) {
    tokens.push_back(size.tokens);
  }
  EXPECT_EQ(tokens, (std::vector<std::int64_t>{256, 512, 768}));
  spec.max_token_budget.reset();
  tokens.clear();
  for (const GraphCapacity& size : rehearsed_sizes(spec, eager_config(spec, 32), 0)) {
    tokens.push_back(size.tokens);
  }
  EXPECT_TRUE(tokens.empty()) << "no whole unit";
}

}  // namespace
}  // namespace fovea
