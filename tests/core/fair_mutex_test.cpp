#include "core/fair_mutex.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

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

TEST(FairMutex, ThreadsAreServedInTheOrderOfTheirComing) {
  FairMutex mutex;
  std::vector<std::uint64_t> order;
  std::vector<std::thread> threads;
  mutex.lock();
  for (std::uint64_t i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const std::lock_guard lock(mutex);
      order.push_back(i);
    });
    while (mutex.num_waiting() != i + 1) std::this_thread::yield();
  }
  mutex.unlock();
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(order, (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(mutex.num_waiting(), 0u);
}

TEST(FairMutex, OnlyOneThreadIsInside) {
  FairMutex mutex;
  int count = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
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
