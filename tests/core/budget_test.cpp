#include "core/budget.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <stop_token>
#include <thread>
#include <utility>
#include <vector>

#include "core/interrupt.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

void wait_for_waiting(const Budget& budget, std::size_t count) {
  while (budget.num_waiting() != count) std::this_thread::yield();
}

TEST(Budget, TicketsFitUntilTheyDoNot) {
  Budget budget(100);
  const Budget::Ticket first = budget.take(60);
  std::optional<Budget::Ticket> second = budget.take(40);
  EXPECT_EQ(budget.used(), 100);
  std::jthread third([&] { (void)budget.take(1); });
  wait_for_waiting(budget, 1);
  second.reset();
  third.join();
  EXPECT_EQ(budget.num_waiting(), 0);
  EXPECT_EQ(budget.used(), 60);
}

TEST(Budget, ALargeTicketIsNotOvertakenBySmallOnes) {
  Budget budget(100);
  std::optional<Budget::Ticket> held = budget.take(60);
  std::vector<int> order;  // written by one thread at a time: both tickets do not fit together
  std::jthread large([&] {
    const Budget::Ticket ticket = budget.take(90);
    order.push_back(90);
  });
  wait_for_waiting(budget, 1);
  std::jthread small([&] {
    const Budget::Ticket ticket = budget.take(20);
    order.push_back(20);
  });
  wait_for_waiting(budget, 2);
  held.reset();
  large.join();
  small.join();
  EXPECT_EQ(order, (std::vector<int>{90, 20}));
}

TEST(Budget, NobodyGrowsAheadOfThoseWhoWait) {
  Budget budget(100);
  std::optional<Budget::Ticket> held = budget.take(60);
  std::jthread large([&] { (void)budget.take(90); });
  wait_for_waiting(budget, 1);
  EXPECT_FALSE(budget.try_take(10));
  EXPECT_FALSE(held->try_grow(10));
  held.reset();
  large.join();
  EXPECT_TRUE(budget.try_take(10));
}

TEST(Budget, MoreThanAllOfItIsATicketOfAllOfIt) {
  Budget budget(100);
  std::optional<Budget::Ticket> held = budget.take(1);
  std::optional<Budget::Ticket> oversized;
  std::jthread other([&] { oversized = budget.take(1000); });
  wait_for_waiting(budget, 1);
  held.reset();
  other.join();
  EXPECT_EQ(oversized->bytes(), 100);
  std::jthread next([&] { (void)budget.take(1); });
  wait_for_waiting(budget, 1);
  oversized.reset();
  next.join();
}

TEST(Budget, AnInterruptEndsTheWaitAndLetsTheNextOneIn) {
  Budget budget(100);
  const Budget::Ticket held = budget.take(50);
  std::stop_source source;
  std::jthread stopped([&] {
    const Interrupt interrupt(source.get_token(), Interrupt::Clock::time_point::max(), "call");
    const InterruptScope scope(&interrupt);
    test::expect_error(ErrorCode::kCancelled, "stopped", [&] { (void)budget.take(100); });
  });
  wait_for_waiting(budget, 1);
  std::jthread next([&] { (void)budget.take(50); });
  wait_for_waiting(budget, 2);
  source.request_stop();
  stopped.join();
  next.join();
  EXPECT_EQ(budget.used(), 50);
}

TEST(Budget, ADeadlineEndsTheWait) {
  Budget budget(100);
  const Budget::Ticket held = budget.take(100);
  const Interrupt interrupt({}, Interrupt::Clock::now(), "call");
  const InterruptScope scope(&interrupt);
  test::expect_error(ErrorCode::kDeadline, "call", [&] { (void)budget.take(1); });
  EXPECT_EQ(budget.num_waiting(), 0);
}

TEST(Budget, WhoDoesNotWaitGetsNoMoreThanThereIs) {
  Budget budget(10);
  std::optional<Budget::Ticket> six = budget.try_take(6);
  ASSERT_TRUE(six);
  EXPECT_FALSE(budget.try_take(5));
  const std::optional<Budget::Ticket> four = budget.try_take(4);
  EXPECT_TRUE(four);
  EXPECT_TRUE(budget.try_take(0)) << "nothing fits when it is full, too";
  six.reset();
  EXPECT_EQ(budget.used(), 4);
  EXPECT_TRUE(budget.try_take(6));
  EXPECT_FALSE(budget.try_take(std::numeric_limits<std::size_t>::max()));
}

TEST(Budget, ATicketGrowsAndShrinks) {
  Budget budget(10);
  {
    Budget::Ticket ticket(budget);
    EXPECT_TRUE(ticket.try_grow(4));
    EXPECT_TRUE(ticket.try_grow(6));
    EXPECT_FALSE(ticket.try_grow(1));
    EXPECT_EQ(ticket.bytes(), 10);
    ticket.shrink(7);
    EXPECT_EQ(ticket.bytes(), 3);
    EXPECT_EQ(budget.used(), 3);
  }
  EXPECT_EQ(budget.used(), 0);
}

TEST(Budget, ATicketThatIsMovedIsCountedOnce) {
  Budget budget(10);
  Budget::Ticket first = budget.take(4);
  Budget::Ticket second = std::move(first);
  EXPECT_EQ(second.bytes(), 4);
  second = budget.take(3);
  EXPECT_EQ(budget.used(), 3);
  second = {};
  EXPECT_EQ(budget.used(), 0);
}

TEST(Budget, ATicketOfNoBudgetHasNothing) {
  Budget::Ticket none;
  EXPECT_EQ(none.bytes(), 0);
  EXPECT_TRUE(none.try_grow(0));
  EXPECT_FALSE(none.try_grow(1));
}

TEST(Budget, LosesNothingAmongThreads) {
  Budget budget(100);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&, waits = i % 2 == 0] {
      for (std::size_t n = 0; n < 2'000; ++n) {
        Budget::Ticket ticket = waits ? budget.take(n % 60) : Budget::Ticket(budget);
        if (!waits && !ticket.try_grow(n % 60)) continue;
        EXPECT_LE(budget.used(), 100);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(budget.used(), 0);
}

}  // namespace
}  // namespace fovea
