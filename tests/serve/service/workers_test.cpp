#include "serve/service/workers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <memory>
#include <vector>

#include "support/expect_error.h"
#include "support/scarce_address_space.h"

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

// Those that have been started must end; they used to be waited for without being told so.
TEST(Workers, SayThatAThreadCannotBeStarted) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers need address space without bounds";
#endif
  const fovea::test::ScarceAddressSpace limit(std::size_t{128} << 20);
  fovea::test::expect_error(ErrorCode::kIo, " of 4000: ", [] { const Workers workers(4000); });
  std::promise<void> ran;
  Workers two(2);
  two.run([&] { ran.set_value(); });
  ran.get_future().wait();
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
