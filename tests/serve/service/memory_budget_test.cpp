#include "serve/service/memory_budget.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace fovea::serve {
namespace {

TEST(MemoryBudget, GivesNoMoreThanThereIs) {
  MemoryBudget budget(10);
  std::shared_ptr<void> six = budget.take(6);
  EXPECT_NE(six, nullptr);
  EXPECT_EQ(budget.take(5), nullptr);
  const std::shared_ptr<void> four = budget.take(4);
  EXPECT_NE(four, nullptr);
  EXPECT_EQ(budget.used(), 10);
  six.reset();
  EXPECT_EQ(budget.used(), 4);
  EXPECT_NE(budget.take(6), nullptr);
}

TEST(MemoryBudget, HasRoomForNothingWhenFull) {
  MemoryBudget budget(1);
  const std::shared_ptr<void> all = budget.take(1);
  EXPECT_NE(budget.take(0), nullptr);
}

TEST(MemoryBudget, LosesNothingAmongThreads) {
  MemoryBudget budget(100);
  std::vector<std::jthread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 10'000; ++n) {
        const std::shared_ptr<void> room = budget.take(n % 60);
        EXPECT_LE(budget.used(), 100);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(budget.used(), 0);
}

}  // namespace
}  // namespace fovea::serve
