// Capture on a thread of its own while batches are served.
#include <gtest/gtest.h>

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

TEST(BackgroundCapture, DoesNothingWithoutGraphs) {
  GraphManagerOptions options;
  options.user.cudagraph_mm_encoder = false;
  MockHarness h(MockModel{}, options);
  h.manager.capture_in_background();
  h.manager.wait_for_background();
  EXPECT_FALSE(h.manager.is_captured());
}

}  // namespace
}  // namespace fovea
