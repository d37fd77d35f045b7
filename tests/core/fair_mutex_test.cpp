#include "core/fair_mutex.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stop_token>
#include <thread>
#include <vector>

#include "support/expect_error.h"

namespace fovea {
namespace {

TEST(FairMutex, WhoWaitsComesBeforeWhoLocksAgain) {
  FairMutex mutex;
  std::vector<int> order;
  mutex.lock();
  std::thread other([&] {
    const std::lock_guard lock(mutex);
    order.push_back(1);
  });
  while (mutex.num_waiting() == 0) std::this_thread::yield();
  mutex.unlock();
  mutex.lock();
  order.push_back(2);
  mutex.unlock();
  other.join();
  EXPECT_EQ(order, (std::vector<int>{1, 2}));
}

/// The order in which threads with so much work get a held mutex, in which they came.
std::vector<std::int64_t> order_of(const std::vector<std::int64_t>& work) {
  FairMutex mutex;
  std::vector<std::int64_t> order;
  std::vector<std::jthread> threads;
  mutex.lock();
  for (std::size_t i = 0; i < work.size(); ++i) {
    threads.emplace_back([&, i] {
      mutex.lock(work[i]);
      order.push_back(static_cast<std::int64_t>(i));
      mutex.unlock();
    });
    while (mutex.num_waiting() != i + 1) std::this_thread::yield();
  }
  mutex.unlock();
  threads.clear();
  EXPECT_EQ(mutex.num_waiting(), 0u);
  return order;
}

TEST(FairMutex, ThreadsOfEqualWorkAreServedInTheOrderOfTheirComing) {
  EXPECT_EQ(order_of({5, 5, 5, 5, 5, 5}), (std::vector<std::int64_t>{0, 1, 2, 3, 4, 5}));
}

TEST(FairMutex, TheThreadWithTheLeastWorkIsNext) {
  EXPECT_EQ(order_of({9, 9, 1, 4}), (std::vector<std::int64_t>{2, 3, 0, 1}));
}

TEST(FairMutex, NoThreadIsOvertakenMoreThanEightTimes) {
  EXPECT_EQ(order_of({100, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}),
            (std::vector<std::int64_t>{1, 2, 3, 4, 5, 6, 7, 8, 0, 9, 10}));
}

TEST(FairMutex, WhoGivesWayGoesOnIfItHasTheLeastWork) {
  FairMutex mutex;
  std::vector<int> order;
  mutex.lock();
  std::thread other([&] {
    mutex.lock(5);
    order.push_back(5);
    mutex.unlock();
  });
  while (mutex.num_waiting() == 0) std::this_thread::yield();
  mutex.give_way(4);
  order.push_back(4);
  mutex.give_way(6);
  order.push_back(6);
  mutex.unlock();
  other.join();
  EXPECT_EQ(order, (std::vector<int>{4, 5, 6}));
}

TEST(FairMutex, WhoStopsWaitingLeavesTheQueue) {
  FairMutex mutex;
  std::stop_source stop;
  bool entered = false;
  mutex.lock();
  std::thread cancelled([&] {
    const Interrupt interrupt(stop.get_token(), Interrupt::Clock::time_point::max(), "a call");
    const InterruptScope scope(&interrupt);
    test::expect_error(ErrorCode::kCancelled, "stopped", [&] { mutex.lock(); });
  });
  while (mutex.num_waiting() != 1) std::this_thread::yield();
  std::thread behind([&] {
    const std::lock_guard lock(mutex);
    entered = true;
  });
  while (mutex.num_waiting() != 2) std::this_thread::yield();
  stop.request_stop();
  cancelled.join();
  EXPECT_EQ(mutex.num_waiting(), 1u);
  mutex.unlock();
  behind.join();
  EXPECT_TRUE(entered);
}

TEST(FairMutex, CountsThoseWhoWaitWithWork) {
  FairMutex mutex;
  const auto wait_with = [&mutex](std::int64_t work) {
    return std::jthread([&mutex, work] {
      mutex.lock(work);
      mutex.unlock();
    });
  };
  mutex.lock();
  const std::jthread none = wait_with(0);
  const std::jthread large = wait_with(3);
  const std::jthread small = wait_with(1);
  while (mutex.num_waiting() != 3) std::this_thread::yield();
  EXPECT_EQ(mutex.num_waiting(1), 2u);
  EXPECT_EQ(mutex.num_waiting(4), 0u);
  mutex.unlock();
}

TEST(FairMutex, WaitingEndsAtTheDeadline) {
  FairMutex mutex;
  mutex.lock();
  const Interrupt interrupt({}, Interrupt::Clock::now() + std::chrono::milliseconds(1), "a call");
  const InterruptScope scope(&interrupt);
  test::expect_error(ErrorCode::kDeadline, "a call: ", [&] { mutex.lock(); });
  EXPECT_EQ(mutex.num_waiting(), 0u);
  mutex.unlock();
  mutex.lock();  // nobody has it: no wait, and no look at the deadline
  mutex.unlock();
}

TEST(FairMutex, OnlyOneThreadIsInside) {
  FairMutex mutex;
  int count = 0;
  constexpr std::size_t kThreads = 4;
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (std::size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int j = 0; j < 1000; ++j) {
        const std::lock_guard lock(mutex);
        ++count;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(count, 4000);
}

}  // namespace
}  // namespace fovea
