#include "serve/service/workers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <vector>

namespace fovea::serve {
namespace {

TEST(Workers, RunAllTasksBeforeTheyEnd) {
  std::atomic<int> ran = 0;
  {
    Workers workers(3);
    for (int i = 0; i < 1000; ++i) workers.run([&] { ++ran; });
  }
  EXPECT_EQ(ran, 1000);
}

TEST(Workers, AreIdleWhenTasksAndTheirTasksHaveRun) {
  Workers workers(2);
  std::atomic<int> ran = 0;
  for (int i = 0; i < 100; ++i) {
    workers.run([&] { workers.run([&] { ++ran; }); });
  }
  workers.wait_idle();
  EXPECT_EQ(ran, 100);
}

TEST(Workers, RunTasksOfTasks) {
  std::promise<void> inner;
  Workers workers(1);
  workers.run([&] { workers.run([&] { inner.set_value(); }); });
  inner.get_future().wait();
}

TEST(Workers, LetGoOfATaskThatHasRun) {
  const auto held = std::make_shared<int>(1);
  Workers workers(1);
  workers.run([copy = held] { EXPECT_EQ(*copy, 1); });
  std::promise<void> later;
  workers.run([&] { later.set_value(); });
  later.get_future().wait();
  EXPECT_EQ(held.use_count(), 1);
}

TEST(Workers, RunTheTasksOfOneThreadInTheirOrder) {
  std::vector<int> order;
  {
    Workers workers(1);
    for (int i = 0; i < 100; ++i) workers.run([&order, i] { order.push_back(i); });
  }
  EXPECT_TRUE(std::ranges::is_sorted(order));
  EXPECT_EQ(order.size(), 100U);
}

}  // namespace
}  // namespace fovea::serve
