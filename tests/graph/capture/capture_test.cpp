// How graphs come about: all at once, on demand, in the background, and where memory is short.
#include "graph/capture/capture.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <mutex>
#include <stop_token>
#include <vector>

#include "graph/harness.h"
#include "graph/recording_log.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using namespace test;  // NOLINT: the harness is written for these tests

/// What a manager gives a GraphCapture: graphs of 16 and of 64 tokens.
class GraphCaptureTest : public ::testing::Test {
 protected:
  static constexpr GraphKey kSmall{.budget = 16};
  static constexpr GraphKey kLarge{.budget = 64};

  /// Made at the first call, with the options as they are then.
  [[nodiscard]] GraphCapture& capture() {
    if (!capture_) {
      config_ = graph_config_of(model_, options_.max_num_batched_tokens, {.user = options_.user});
      runners_ = std::make_unique<Runners>(model_, config_, device_);
      capture_ = std::make_unique<GraphCapture>(model_, config_, options_, *runners_);
    }
    return *capture_;
  }
  [[nodiscard]] std::vector<GraphKey> captured() const {
    const std::lock_guard lock(runners_->mutex);
    std::vector<GraphKey> keys;
    for (const auto& graph : runners_->graphs.graphs()) keys.push_back(graph->key());
    return keys;
  }
  void capture_some(const std::vector<GraphKey>& keys) {
    GraphCapture& all = capture();
    const std::lock_guard lock(runners_->mutex);
    all.capture(keys);
  }

  RecordingLog log_;
  GraphManagerOptions options_ = [this] {
    GraphManagerOptions options = small_options();
    options.log = &log_;
    return options;
  }();
  MockModel model_;
  std::unique_ptr<Kernels> kernels_ = make_cpu_kernels(CpuIsa::kPortable, 1);
  DeferredDevice device_{*kernels_, Schedule::kLast};
  GraphConfig config_;
  std::unique_ptr<Runners> runners_;
  std::unique_ptr<GraphCapture> capture_;
};

TEST_F(GraphCaptureTest, CapturesNothingByItself) {
  (void)capture();
  EXPECT_TRUE(captured().empty());
  EXPECT_EQ(capture().total_ms(), 0);
}

TEST_F(GraphCaptureTest, CapturesAllOnceLargestFirst) {
  capture().capture_all();
  EXPECT_EQ(captured(), (std::vector<GraphKey>{kLarge, kSmall}));
  const std::int64_t recorded = model_.forwards_recorded();
  capture().capture_all();
  EXPECT_EQ(model_.forwards_recorded(), recorded);
}

TEST_F(GraphCaptureTest, CapturesOnDemandWhatIsMissing) {
  capture_some({kSmall});
  EXPECT_EQ(captured(), (std::vector<GraphKey>{kSmall}));
  const std::int64_t recorded = model_.forwards_recorded();
  capture_some({kSmall});
  EXPECT_EQ(model_.forwards_recorded(), recorded);
}

TEST_F(GraphCaptureTest, EndsBetweenTwoRecordings) {
  std::stop_source stop;
  stop.request_stop();
  capture().capture_all(stop.get_token());
  EXPECT_TRUE(captured().empty());
  EXPECT_EQ(log_.count("encoder_graphs.captured"), 0);
}

TEST_F(GraphCaptureTest, LeavesOutWhatThereIsNoMemoryForUntilItIsCleared) {
  GraphCapture& all = capture();
  device_.set_limit(100'000);  // 64 tokens need 140,000, 16 a quarter of it
  all.capture_all();
  EXPECT_EQ(captured(), (std::vector<GraphKey>{kSmall}));
  EXPECT_FALSE(all.is_possible(kLarge));
  EXPECT_TRUE(all.is_possible(kSmall));
  EXPECT_EQ(log_.count("encoder_graphs.no_memory"), 1);
  device_.set_limit(std::numeric_limits<std::size_t>::max());
  all.capture_all();
  EXPECT_EQ(captured(), (std::vector<GraphKey>{kSmall})) << "asking again would drop the others";
  {
    const std::lock_guard lock(runners_->mutex);
    all.clear();
  }
  EXPECT_TRUE(captured().empty());
  EXPECT_TRUE(all.is_possible(kLarge));
  all.capture_all();
  EXPECT_EQ(captured(), (std::vector<GraphKey>{kLarge, kSmall}));
}

TEST_F(GraphCaptureTest, ReportsWhatAGraphIs) {
  capture_some({kLarge});
  const std::lock_guard lock(runners_->mutex);
  const GraphReport report = capture_->report_of(*runners_->graphs.graphs().front());
  EXPECT_EQ(report.path, "default");
  EXPECT_EQ(report.budget, 64);
  EXPECT_GT(report.recording_bytes, 0);
  EXPECT_GT(report.shared_bytes, 0);
  EXPECT_FALSE(capture_->eager_wins(*runners_->graphs.graphs().front(), 1)) << "nothing measured";
}

TEST_F(GraphCaptureTest, RehearsalsGiveTheirMemoryBack) {
  capture().rehearse_all({});
  EXPECT_EQ(runners_->eager.memory().device_bytes(), 0U);
  EXPECT_EQ(log_.count("encoder_graphs."), 0);
  EXPECT_EQ(log_.count("eager_runs.rehearsed sizes="), 1);
}

TEST_F(GraphCaptureTest, RehearsalsEndAtTheFirstSizeWithoutMemory) {
  GraphCapture& all = capture();
  device_.set_limit(device_.allocated_bytes());
  all.rehearse_all({});
  EXPECT_EQ(log_.count("eager_runs.rehearsed sizes=0"), 1);
}

TEST_F(GraphCaptureTest, TheBackgroundCapturesAllAndTellsItsFailureOnce) {
  capture().start_in_background();
  capture_->wait_for_background();
  EXPECT_FALSE(capture_->runs_in_background());
  EXPECT_EQ(captured(), (std::vector<GraphKey>{kLarge, kSmall}));
  capture_->wait_for_background();  // of nothing
}

TEST(GraphCaptureFailure, ReachesWhoeverWaitsForTheBackground) {
  RecordingLog log;
  GraphManagerOptions options = small_options();
  options.log = &log;
  const MockModel model({.in_forward = [] { throw Error(ErrorCode::kInternal, "no forward"); }});
  const std::unique_ptr<Kernels> kernels = make_cpu_kernels(CpuIsa::kPortable, 1);
  const std::unique_ptr<Device> device = make_cpu_device(1, *kernels);
  const GraphConfig config =
      graph_config_of(model, options.max_num_batched_tokens, {.user = options.user});
  Runners runners(model, config, *device);
  GraphCapture capture(model, config, options, runners);
  capture.start_in_background();
  test::expect_error(ErrorCode::kInternal, "no forward", [&] { capture.wait_for_background(); });
  EXPECT_EQ(log.count("encoder_graphs.capture_failed message=no forward"), 1);
  EXPECT_NO_THROW(capture.wait_for_background()) << "told once";
}

}  // namespace
}  // namespace fovea
