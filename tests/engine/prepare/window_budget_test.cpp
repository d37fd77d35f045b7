// What fits into a window, and what waits for the next one.
#include "engine/prepare/window_budget.h"

#include <gtest/gtest.h>

#include <stop_token>
#include <thread>
#include <vector>

#include "core/interrupt.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

/// Which of the items with these sizes are admitted. Threads come to their places one by one, but
/// ask in whatever order they run.
std::vector<bool> admitted(std::size_t total_bytes, const std::vector<std::size_t>& sizes) {
  WindowBudget budget(total_bytes, sizes.size());
  std::vector<char> fits(sizes.size());
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = sizes.size(); i-- > 0;) {
      threads.emplace_back([&, i] {
        WindowBudget::Place place(budget, i);
        fits[i] = place.take(sizes[i]);
      });
    }
  }
  return {fits.begin(), fits.end()};
}

TEST(WindowBudget, AdmitsItemsInTheirOrderUntilOneDoesNotFit) {
  for (int round = 0; round < 20; ++round) {
    EXPECT_EQ(admitted(100, {40, 60, 0}), (std::vector{true, true, true}));
    EXPECT_EQ(admitted(100, {40, 61, 1}), (std::vector{true, false, false}));
    EXPECT_EQ(admitted(100, {1000, 1}), (std::vector{true, false})) << "too large for any window";
  }
}

TEST(WindowBudget, DoesNotWaitForItemsThatAreGone) {
  WindowBudget budget(100, 3);
  { const WindowBudget::Place failed(budget, 1); }
  { const WindowBudget::Place also_failed(budget, 0); }
  WindowBudget::Place last(budget, 2);
  EXPECT_TRUE(last.take(100));
}

TEST(WindowBudget, AnInterruptEndsTheWait) {
  WindowBudget budget(100, 2);
  std::stop_source source;
  const Interrupt interrupt(source.get_token(), {}, "test");
  const InterruptScope scope(&interrupt);
  WindowBudget::Place second(budget, 1);
  const std::jthread stop([&] { source.request_stop(); });
  test::expect_error(ErrorCode::kCancelled, "stopped", [&] { (void)second.take(1); });
}

}  // namespace
}  // namespace fovea
