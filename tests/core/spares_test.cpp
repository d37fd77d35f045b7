#include "core/spares.h"

#include <gtest/gtest.h>

#include <optional>

#include "core/check.h"

namespace fovea {
namespace {

/// Counts itself.
struct Counted {
  explicit Counted(int& count) : count_(count) { ++count_; }
  ~Counted() { --count_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  int& count_;
};

class SparesTest : public ::testing::Test {
 protected:
  int alive_ = 0;
  int made_ = 0;
  Spares<Counted> spares_{[this] {
    ++made_;
    return std::make_unique<Counted>(alive_);
  }};
};

TEST_F(SparesTest, WhoComesAloneAlwaysGetsTheSame) {
  for (int i = 0; i < 100; ++i) (void)spares_.take();
  EXPECT_EQ(made_, 1);
}

TEST_F(SparesTest, EveryLoanHasAnObjectOfItsOwn) {
  {
    const auto first = spares_.take();
    const auto second = spares_.take();
    EXPECT_NE(&*first, &*second);
  }
  EXPECT_EQ(made_, 2);
  EXPECT_EQ(alive_, 2);
}

TEST_F(SparesTest, WhatTheLast32LoansDidWithoutIsReleased) {
  {
    const auto first = spares_.take();
    const auto second = spares_.take();
  }
  for (int i = 0; i < 31; ++i) (void)spares_.take();
  EXPECT_EQ(alive_, 2);
  (void)spares_.take();
  EXPECT_EQ(alive_, 1);
}

TEST_F(SparesTest, ClearLeavesTheLoans) {
  { const auto idle = spares_.take(); }
  {
    const auto first = spares_.take();
    { const auto second = spares_.take(); }
    spares_.clear();
    EXPECT_EQ(alive_, 1);
    EXPECT_EQ(&first->count_, &alive_);
  }
  spares_.clear();
  EXPECT_EQ(alive_, 0);
}

TEST(Spares, AFailureToMakeAnObjectReachesTheCaller) {
  bool broken = true;
  Spares<int> spares([&] {
    FOVEA_CHECK(!broken, kOutOfMemory, "none left");
    return std::make_unique<int>(7);
  });
  EXPECT_THROW((void)spares.take(), Error);
  broken = false;
  EXPECT_EQ(*spares.take(), 7);
}

}  // namespace
}  // namespace fovea
