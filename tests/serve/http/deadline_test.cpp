#include "serve/http/deadline.h"

#include <gtest/gtest.h>

#include <optional>

#include "serve/http/operation.h"

namespace fovea::serve {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

class DeadlineTest : public testing::Test {
 protected:
  asio::io_context context_{1};
  int expiries_ = 0;
  std::optional<Deadline> deadline_{std::in_place, context_.get_executor(),
                                    [this] { ++expiries_; }};
};

TEST_F(DeadlineTest, CallsOnceWhenItsTimeHasCome) {
  deadline_->set(Clock::now());
  EXPECT_FALSE(deadline_->has_expired()) << "nothing happens within set()";
  context_.run();
  EXPECT_TRUE(deadline_->has_expired());
  EXPECT_EQ(expiries_, 1);
}

TEST_F(DeadlineTest, MayBeMovedLaterAndEarlier) {
  deadline_->set(Clock::now() + hours(1));
  deadline_->set(Clock::now() + hours(2));
  deadline_->set(Clock::now() + milliseconds(1));
  context_.run_one();  // the wait for the first time, which another has taken over
  context_.run_one();
  EXPECT_EQ(expiries_, 1);
}

TEST_F(DeadlineTest, WaitsOnWhenItWasMovedMeanwhile) {
  deadline_->set(Clock::now());
  deadline_->set(Clock::now() + milliseconds(2));
  context_.run();
  EXPECT_EQ(expiries_, 1);
  EXPECT_TRUE(deadline_->has_expired());
}

TEST_F(DeadlineTest, BeginsAnewWhenItIsSetAgain) {
  deadline_->set(Clock::now());
  context_.run();
  deadline_->set(Clock::now());
  EXPECT_FALSE(deadline_->has_expired());
  context_.restart();
  context_.run();
  EXPECT_EQ(expiries_, 2);
}

TEST_F(DeadlineTest, CallsNobodyOnceItHasGone) {
  deadline_->set(Clock::now());
  deadline_.reset();
  context_.run();
  EXPECT_EQ(expiries_, 0);
}

TEST(Event, WakesTheCoroutineThatWaits) {
  asio::io_context context(1);
  Event event(context.get_executor());
  int woken = 0;
  const auto wait = [&]() -> Awaitable<void> {
    co_await event.wait();
    ++woken;
    co_await event.wait_until(Clock::now());
    ++woken;
  };
  event.notify();  // nothing waits, and nothing is kept for later
  spawn(context.get_executor(), wait(), [](const std::exception_ptr&) {});
  context.poll();
  EXPECT_EQ(woken, 0);
  event.notify();
  context.restart();
  context.run();
  EXPECT_EQ(woken, 2) << "the second wait ends at its time";
}

}  // namespace
}  // namespace fovea::serve
