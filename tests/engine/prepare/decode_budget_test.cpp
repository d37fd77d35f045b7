#include "engine/prepare/decode_budget.h"

#include <gtest/gtest.h>

#include <vector>

namespace fovea {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

TEST(DecodeBudget, MemoryThatIsLeftServesTheNextShareThatCoversIt) {
  DecodeBudget budget(10 * kMiB);
  std::vector<std::uint8_t> memory(4 * kMiB);
  const std::uint8_t* const place = memory.data();
  budget.take(5 * kMiB).leave(std::move(memory));
  EXPECT_TRUE(budget.take(3 * kMiB).take_memory().empty());
  DecodeBudget::Share share = budget.take(4 * kMiB);
  EXPECT_EQ(share.take_memory().data(), place);
  EXPECT_TRUE(share.take_memory().empty()) << "once";
  EXPECT_EQ(budget.trim(), 0);
}

TEST(DecodeBudget, TheLargestMemoryThatFitsIsTaken) {
  DecodeBudget budget(20 * kMiB);
  for (const std::size_t size : {2 * kMiB, 6 * kMiB, 4 * kMiB}) {
    budget.take(size).leave(std::vector<std::uint8_t>(size));
  }
  EXPECT_EQ(budget.take(5 * kMiB).take_memory().capacity(), 4 * kMiB);
  EXPECT_EQ(budget.trim(), 8 * kMiB);
}

TEST(DecodeBudget, MemoryThatIsLeftStaysInTheBudget) {
  DecodeBudget budget(10 * kMiB);
  budget.take(5 * kMiB).leave(std::vector<std::uint8_t>(5 * kMiB));
  { const DecodeBudget::Share share = budget.take(5 * kMiB); }  // fits beside it
  EXPECT_EQ(budget.trim(), 5 * kMiB);
  budget.take(5 * kMiB).leave(std::vector<std::uint8_t>(5 * kMiB));
  const DecodeBudget::Share share = budget.take(6 * kMiB);  // waits for nobody
  EXPECT_EQ(budget.trim(), 0) << "it has made room";
}

TEST(DecodeBudget, MemoryThatNobodyHasAUseForGoes) {
  DecodeBudget budget(10 * kMiB);
  budget.take(5 * kMiB).leave(std::vector<std::uint8_t>(5 * kMiB));
  for (int i = 0; i < 31; ++i) (void)budget.take(kMiB);
  EXPECT_EQ(budget.take(5 * kMiB).take_memory().capacity(), 5 * kMiB);
  budget.take(5 * kMiB).leave(std::vector<std::uint8_t>(5 * kMiB));
  for (int i = 0; i < 40; ++i) (void)budget.take(kMiB);
  EXPECT_EQ(budget.trim(), 0);
}

TEST(DecodeBudget, KeepsNoMemoryThatAShareDoesNotCover) {
  DecodeBudget budget(10 * kMiB);
  budget.take(kMiB).leave(std::vector<std::uint8_t>(2 * kMiB));
  budget.take(kMiB).leave(std::vector<std::uint8_t>(kMiB / 2));
  EXPECT_EQ(budget.trim(), 0);
}

TEST(DecodeBudget, ASharePassesOverWhatItNoLongerCovers) {
  DecodeBudget budget(10 * kMiB);
  DecodeBudget::Share share = budget.take(6 * kMiB);
  share.leave(std::vector<std::uint8_t>(4 * kMiB));  // it has 2 MiB now
  EXPECT_TRUE(share.take_memory().empty());
  share.leave(std::vector<std::uint8_t>(3 * kMiB));
  EXPECT_EQ(budget.trim(), 4 * kMiB);
}

TEST(DecodeBudget, FollowsFromTheOptions) {
  EXPECT_EQ(decode_budget_bytes({}, 2), 448 * kMiB);
  EXPECT_EQ(decode_budget_bytes({}, 100), 3200 * kMiB);
  EXPECT_EQ(decode_budget_bytes({.max_decode_bytes = 1000 * kMiB}, 100), 1000 * kMiB);
  EXPECT_EQ(decode_budget_bytes({.max_decode_bytes = 1}, 1), 384 * kMiB) << "room for one item";
}

}  // namespace
}  // namespace fovea
