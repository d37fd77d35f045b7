#include "engine/prepare/decode_budget.h"

#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <stop_token>
#include <thread>
#include <vector>

#include "core/interrupt.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

void wait_for_waiting(const DecodeBudget& budget, std::size_t count) {
  while (budget.num_waiting() != count) std::this_thread::yield();
}

TEST(DecodeBudget, SharesFitUntilTheyDoNot) {
  DecodeBudget budget(100);
  const DecodeBudget::Share first = budget.take(60);
  std::optional<DecodeBudget::Share> second = budget.take(40);
  std::jthread third([&] { (void)budget.take(1); });
  wait_for_waiting(budget, 1);
  second.reset();
  third.join();
  EXPECT_EQ(budget.num_waiting(), 0);
}

TEST(DecodeBudget, ALargeShareIsNotOvertakenBySmallOnes) {
  DecodeBudget budget(100);
  std::optional<DecodeBudget::Share> held = budget.take(60);
  std::vector<int> order;  // written by one thread at a time: both shares do not fit together
  std::jthread large([&] {
    const DecodeBudget::Share share = budget.take(90);
    order.push_back(90);
  });
  wait_for_waiting(budget, 1);
  std::jthread small([&] {
    const DecodeBudget::Share share = budget.take(20);
    order.push_back(20);
  });
  wait_for_waiting(budget, 2);
  held.reset();
  large.join();
  small.join();
  EXPECT_EQ(order, (std::vector<int>{90, 20}));
}

TEST(DecodeBudget, MoreThanAllOfItRunsAlone) {
  DecodeBudget budget(100);
  std::optional<DecodeBudget::Share> held = budget.take(1);
  std::optional<DecodeBudget::Share> oversized;
  std::jthread other([&] { oversized = budget.take(1000); });
  wait_for_waiting(budget, 1);
  held.reset();
  other.join();
  std::jthread next([&] { (void)budget.take(1); });
  wait_for_waiting(budget, 1);
  oversized.reset();
  next.join();
}

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

TEST(DecodeBudget, AnInterruptEndsTheWaitAndLetsTheNextOneIn) {
  DecodeBudget budget(100);
  const DecodeBudget::Share held = budget.take(50);
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
}

TEST(DecodeBudget, FollowsFromTheOptions) {
  EXPECT_EQ(decode_budget_bytes({}, 2), 448 * kMiB);
  EXPECT_EQ(decode_budget_bytes({}, 100), 3200 * kMiB);
  EXPECT_EQ(decode_budget_bytes({.max_decode_bytes = 1000 * kMiB}, 100), 1000 * kMiB);
  EXPECT_EQ(decode_budget_bytes({.max_decode_bytes = 1}, 1), 384 * kMiB) << "room for one item";
}

}  // namespace
}  // namespace fovea
