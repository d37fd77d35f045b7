#include "core/interrupt.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <stop_token>

#include "core/thread_pool.h"
#include "support/expect_error.h"

namespace fovea {
namespace {

using Clock = Interrupt::Clock;
using test::expect_error;
constexpr Clock::time_point kNever = Clock::time_point::max();

Clock::time_point a_second_ago() { return Clock::now() - std::chrono::seconds(1); }

TEST(Interrupt, LetsWorkGoOnUntilItIsAskedToStop) {
  std::stop_source source;
  const Interrupt interrupt(source.get_token(), kNever, "a.png");
  EXPECT_NO_THROW(interrupt.check());
  source.request_stop();
  expect_error(ErrorCode::kCancelled, "stopped", [&] { interrupt.check(); });
}

TEST(Interrupt, NamesWhatMissedItsDeadline) {
  const Interrupt interrupt({}, a_second_ago(), "a.png");
  expect_error(ErrorCode::kDeadline, "a.png: ", [&] { interrupt.check(); });
}

constexpr Clock::rep kLongAgo = 0;

TEST(Interrupt, NotesInThePulsesAroundItThatWorkMoves) {
  Interrupt::Pulse pulse = kLongAgo;
  const Interrupt batch({}, kNever, "batch", nullptr, &pulse);
  const Interrupt call({}, kNever, "encode", &batch);
  const InterruptScope scope(&call);
  const Clock::rep before = Clock::now().time_since_epoch().count();
  check_interrupt();
  EXPECT_GE(pulse, before);
}

TEST(Interrupt, TakesNoWaitForMovement) {
  Interrupt::Pulse pulse = kLongAgo;
  const Interrupt call({}, kNever, "encode", nullptr, &pulse);
  const InterruptScope scope(&call);
  check_interrupt_of_wait();
  std::mutex mutex;
  std::condition_variable changed;
  std::unique_lock lock(mutex);
  int looks = 0;
  wait_under_interrupt(changed, lock, [&] { return ++looks > 3; });
  EXPECT_EQ(pulse, kLongAgo);
}

TEST(Interrupt, EndsWithTheOneAroundIt) {
  const Interrupt call({}, a_second_ago(), "encode");
  const Interrupt item({}, kNever, "a.png", &call);
  expect_error(ErrorCode::kDeadline, "encode: ", [&] { item.check(); });
}

TEST(CheckInterrupt, LooksAtTheInnermostScopeOfTheThread) {
  const Interrupt late({}, a_second_ago(), "late");
  const Interrupt open({}, kNever, "open");
  EXPECT_NO_THROW(check_interrupt());
  {
    const InterruptScope outer(&late);
    EXPECT_THROW(check_interrupt(), Error);
    {
      const InterruptScope inner(&open);
      EXPECT_NO_THROW(check_interrupt());
      const InterruptScope shielded(nullptr);
      EXPECT_NO_THROW(check_interrupt());
    }
    EXPECT_THROW(check_interrupt(), Error);
  }
  EXPECT_NO_THROW(check_interrupt());
}

class InterruptedPool : public ::testing::TestWithParam<int> {};

TEST_P(InterruptedPool, StartsNoTaskAfterTheStop) {
  ThreadPool pool(GetParam());
  std::stop_source source;
  const Interrupt interrupt(source.get_token(), kNever, "loop");
  std::atomic<int> tasks = 0;
  {
    const InterruptScope scope(&interrupt);
    expect_error(ErrorCode::kCancelled, "stopped", [&] {
      pool.parallel_for(1000, [&](std::int64_t, int) {
        ++tasks;
        source.request_stop();
      });
    });
  }
  EXPECT_LE(tasks, GetParam());
  tasks = 0;
  pool.parallel_for(10, [&](std::int64_t, int) { ++tasks; });
  EXPECT_EQ(tasks, 10) << "an interrupt must not outlive its scope";
}

TEST_P(InterruptedPool, MovesWithEveryTask) {
  ThreadPool pool(GetParam());
  Interrupt::Pulse pulse = kLongAgo;
  const Interrupt interrupt({}, kNever, "loop", nullptr, &pulse);
  const InterruptScope scope(&interrupt);
  pool.parallel_for(3, [](std::int64_t, int) {});
  EXPECT_GT(pulse, kLongAgo);
}

TEST_P(InterruptedPool, CarriesTheInterruptIntoEveryTask) {
  ThreadPool pool(GetParam());
  const Interrupt interrupt({}, kNever, "loop");
  const InterruptScope scope(&interrupt);
  std::atomic<int> without = 0;
  pool.parallel_for(100, [&](std::int64_t, int) {
    if (current_interrupt() != &interrupt) ++without;
  });
  EXPECT_EQ(without, 0);
}

INSTANTIATE_TEST_SUITE_P(Sizes, InterruptedPool, ::testing::Values(1, 2, 5));

}  // namespace
}  // namespace fovea
