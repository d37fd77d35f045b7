// Runs, captures and waits that end early: afterwards everything gives the rows it always gives.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <stop_token>
#include <thread>

#include "core/interrupt.h"
#include "graph/harness.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using namespace test;  // NOLINT: the harness is written for these tests

constexpr Interrupt::Clock::time_point kNever = Interrupt::Clock::time_point::max();

/// Ends the work of its thread at the count-th place where a hook is called.
class Stopper {
 public:
  /// Checks the interrupt there as an op of the model would.
  [[nodiscard]] std::function<void()> hook() {
    return [this] {
      if (--left_ == 0) source_.request_stop();
      check_interrupt();
    };
  }
  /// Runs `work` under an interrupt. @return whether it was cancelled.
  template <class Work>
  bool cancels(int count, Work&& work) {
    left_ = count;
    source_ = {};
    const Interrupt interrupt(source_.get_token(), kNever, "a call");
    const InterruptScope scope(&interrupt);
    try {
      work();
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kCancelled) << error.what();
      return true;
    }
    return false;
  }

 private:
  int left_ = 0;
  std::stop_source source_;
};

enum class Where : std::uint8_t { kHost, kLate, kCopyFirst };

class InterruptedRun : public ::testing::TestWithParam<Where> {
 protected:
  static std::unique_ptr<MockHarness> make(const MockOptions& model,
                                           const GraphManagerOptions& options) {
    if (GetParam() == Where::kHost) return std::make_unique<MockHarness>(MockModel(model), options);
    return std::make_unique<MockHarness>(
        MockModel(model), options,
        GetParam() == Where::kLate ? Schedule::kLast : Schedule::kCopyFirst);
  }
  static Batch five_sub_batches(const MockModel& model) {
    return mock_batch(model,
                      {{1, 16, 16}, {1, 14, 14}, {1, 16, 16}, {1, 4, 4}, {1, 18, 18}, {1, 20, 20}});
  }

  /// At which the graphs of 16 and of 64 tokens are recorded.
  static int small_sizes() { return GetParam() == Where::kHost ? 1 : 8; }
  static int large_sizes() { return GetParam() == Where::kHost ? 1 : 6; }

  Stopper stopper_;
};

TEST_P(InterruptedRun, EndsBetweenSubBatchesAndInThem) {
  for (const bool eager : {false, true}) {
    auto h = make({.before_fill = stopper_.hook()}, small_options());
    h->manager.capture();
    const Batch items = five_sub_batches(h->model);
    int count = 1;
    const auto encode = [&] { (void)(eager ? h->encode_eager(items) : h->encode(items)); };
    for (; stopper_.cancels(count, encode); ++count) h->expect_right(items);
    EXPECT_GT(count, 4);
    h->expect_right(items);
  }
}

TEST_P(InterruptedRun, EndsInAnEagerForward) {
  auto h = make({.in_forward = stopper_.hook()}, small_options());
  const Batch items = five_sub_batches(h->model);
  int count = 1;
  for (; stopper_.cancels(count, [&] { (void)h->encode_eager(items); }); ++count) {
    h->expect_right(items);
  }
  EXPECT_GT(count, 4);
}

TEST_P(InterruptedRun, LeavesNoHalfGraph) {
  // Sizing, two rehearsals and the recording of every size of a graph when a batch first needs it,
  // the same for the next, and again without sizing for the first, whose memory has moved.
  int count = 1;
  for (bool cancelled = true; cancelled; ++count) {
    SCOPED_TRACE(count);
    GraphManagerOptions options = small_options();
    options.missing = MissingGraph::kCapture;
    auto h = make({.in_forward = stopper_.hook()}, options);
    const Batch items = mock_batch(h->model, {{1, 4, 4}, {1, 16, 16}, {1, 2, 2}, {1, 16, 16}});
    cancelled = stopper_.cancels(count, [&] { (void)h->encode(items); });
    h->expect_right(items);
    EXPECT_EQ(h->manager.captured_keys().size(), 2u);
    EXPECT_GE(h->manager.stats().graph_hits, 4);
  }
  EXPECT_EQ(count, 1 + 4 * small_sizes() + 4 * large_sizes() + 3 * small_sizes() + 1);
}

TEST_P(InterruptedRun, WarmUpKeepsTheGraphsItHasCaptured) {
  auto h = make({.in_forward = stopper_.hook()}, small_options());
  ASSERT_TRUE(
      stopper_.cancels(2 * (small_sizes() + large_sizes()) + 4, [&] { h->manager.capture(); }));
  EXPECT_EQ(h->manager.captured_keys(), (std::vector<GraphKey>{{.budget = 64}}));
  h->expect_right(five_sub_batches(h->model));
  h->manager.capture();
  EXPECT_EQ(h->manager.captured_keys().size(), 2u);
  h->expect_right(five_sub_batches(h->model));
}

TEST_P(InterruptedRun, WarmUpGoesOnWithSmallerSizes) {
  if (GetParam() == Where::kHost) GTEST_SKIP() << "there are none";
  auto h = make({.in_forward = stopper_.hook()}, small_options());
  const int full_sizes = 2 * (small_sizes() + large_sizes()) + 3 + 3;
  ASSERT_TRUE(stopper_.cancels(full_sizes + 3 + 1, [&] { h->manager.capture(); }));
  EXPECT_EQ(h->manager.captured_keys().size(), 2u);
  h->expect_right(five_sub_batches(h->model));
  h->manager.capture();
  EXPECT_GE(h->model.forwards_recorded(), 3 * (small_sizes() + large_sizes()));
  h->expect_right(five_sub_batches(h->model));
}

INSTANTIATE_TEST_SUITE_P(Devices, InterruptedRun,
                         ::testing::Values(Where::kHost, Where::kLate, Where::kCopyFirst));

TEST(InterruptedWait, ForTheBackgroundLetsItGoOn) {
  std::atomic<bool> captures = false;
  std::atomic<bool> go = false;
  MockHarness h(MockModel({.in_forward =
                               [&] {
                                 captures = true;
                                 while (!go) std::this_thread::yield();
                               }}),
                small_options());
  h.manager.capture_in_background();
  while (!captures) std::this_thread::yield();
  {
    const Interrupt interrupt({}, Interrupt::Clock::now(), "warm_up");
    const InterruptScope scope(&interrupt);
    expect_error(ErrorCode::kDeadline, "warm_up: ", [&] { h.manager.wait_for_background(); });
    const Batch items = mock_batch(h.model, {{1, 4, 4}});
    expect_error(ErrorCode::kDeadline, "warm_up: ", [&] { (void)h.encode(items); });
  }
  go = true;
  h.manager.wait_for_background();
  EXPECT_EQ(h.manager.captured_keys().size(), 2u);
  h.expect_right(mock_batch(h.model, {{1, 4, 4}}));
}

}  // namespace
}  // namespace fovea
