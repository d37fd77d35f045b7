// The lanes of a batcher, with a fake engine.
#include "batcher/scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "batcher/fake_engine.h"
#include "support/expect_error.h"

namespace fovea::batching {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using ::testing::ElementsAre;
using ::testing::SizeIs;

BatcherOptions bounds() {
  return {.max_items = 100,
          .max_bytes = 1000,
          .max_rows = 1000,
          .max_batch_rows = 100,
          .max_batch_items = 10,
          .max_delay = hours(1)};
}

class SchedulerTest : public ::testing::Test {
 protected:
  ~SchedulerTest() override { engine_.let_through(); }

  /// A request of items of these names, 10 rows each, whose reply is kept under `name`.
  Ticket submit(const std::string& name, const std::vector<std::string>& items,
                const EncodeOptions& how = {}) {
    auto request = std::make_shared<Request>();
    for (const std::string& item : items) request->items.push_back(test::named_item(item));
    const auto count = std::ssize(items);
    request->load = {.items = count, .bytes = count, .rows = 10 * count};
    request->how = how;
    request->done = replies_.keep(name);
    return scheduler_.submit(request);
  }
  Ticket submit(const std::string& name, const EncodeOptions& how = {}) {
    return submit(name, {name}, how);
  }
  /// Occupies the engine until let_through().
  void hold_one() {
    engine_.hold();
    submit("first");
    engine_.wait_for_calls(1);
  }
  /// Of so many requests, though the attendant and a lane have ended one.
  void expect_one_end_each(std::size_t count) {
    const BatcherStats stats = scheduler_.stats();
    EXPECT_THAT(replies_.order(), SizeIs(count));
    EXPECT_EQ(stats.completed + stats.failed + stats.cancelled + stats.expired,
              std::ssize(replies_.order()));
    EXPECT_EQ(stats.items, 0);
  }
  std::vector<std::string> names_of_call(std::size_t index) { return engine_.calls()[index].names; }
  ErrorCode error_of(const std::string& name) { return replies_.of(name).error.value().code(); }

  test::FakeEngine engine_;
  test::Replies replies_;
  Scheduler scheduler_{engine_.encode(), bounds()};
};

TEST_F(SchedulerTest, DoesNotWaitBesideAnIdleEngine) {
  submit("a");
  EXPECT_THAT(replies_.of("a").items, SizeIs(1));
}

TEST_F(SchedulerTest, PutsTogetherWhatComesWhileTheEngineWorks) {
  hold_one();
  for (const char* name : {"a", "b", "c"}) submit(name);
  EXPECT_THAT(engine_.calls(), SizeIs(1));
  engine_.let_through();
  const BatchReply& reply = replies_.of("b");
  EXPECT_EQ(reply.items.front().name, "b");
  EXPECT_EQ(reply.batch_items, 3);
  EXPECT_EQ(reply.batch_rows, 30);
  EXPECT_EQ(reply.batch, 2U) << "the second of the engine";
  EXPECT_EQ(replies_.of("a").batch, reply.batch);
  EXPECT_THAT(names_of_call(1), ElementsAre("a", "b", "c"));
}

TEST_F(SchedulerTest, PreparesAFullBatchWhileTheEngineWorks) {
  hold_one();
  submit("a", std::vector<std::string>(5, "a"));
  submit("b", std::vector<std::string>(5, "b"));
  engine_.wait_for_calls(2);
  EXPECT_THAT(names_of_call(1), SizeIs(10));
}

TEST_F(SchedulerTest, HasTwoSmallCallsAtATime) {
  hold_one();
  submit("a", std::vector<std::string>(10, "a"));
  engine_.wait_for_calls(2);
  submit("b", std::vector<std::string>(10, "b"));
  EXPECT_EQ(scheduler_.stats().queued_requests, 1);
  EXPECT_EQ(scheduler_.stats().running_batches, 2);
}

TEST_F(SchedulerTest, GivesALargeRequestACallOfItsOwnBesideSmallOnes) {
  hold_one();
  submit("large", std::vector<std::string>(11, "large"));
  engine_.wait_for_calls(2);
  EXPECT_THAT(names_of_call(1), SizeIs(11));
  submit("a", std::vector<std::string>(10, "a"));
  engine_.wait_for_calls(3);
}

TEST_F(SchedulerTest, BeginsAThirdAndAFourthLargeCallBesideThoseThatTakeLong) {
  engine_.hold();
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    submit(name, std::vector<std::string>(11, name));
  }
  engine_.wait_for_calls(4);
  EXPECT_THAT(names_of_call(3), SizeIs(11));
  EXPECT_EQ(scheduler_.stats().queued_requests, 1);
  engine_.let_through();
  EXPECT_THAT(replies_.of("e").items, SizeIs(11));
}

TEST_F(SchedulerTest, KeepsTheOrderOfItems) {
  hold_one();
  submit("a", {"1", "2"});
  submit("b", {"3", "4", "5"});
  engine_.let_through();
  std::vector<std::string> names;
  for (const Embedding& item : replies_.of("b").items) names.push_back(item.name);
  EXPECT_THAT(names, ElementsAre("3", "4", "5"));
}

TEST_F(SchedulerTest, LetsABadItemFailItsRequestOnly) {
  hold_one();
  submit("a", {"1", "bad"});
  submit("b", {"2"});
  submit("c", {"bad", "3"}, {.on_error = OnError::kSkip});
  engine_.let_through();
  EXPECT_EQ(error_of("a"), ErrorCode::kCorruptData);
  EXPECT_THAT(replies_.of("a").items, SizeIs(0));
  EXPECT_FALSE(replies_.of("b").error);
  EXPECT_FALSE(replies_.of("c").error);
  EXPECT_TRUE(replies_.of("c").items[0].error);
  EXPECT_FALSE(replies_.of("c").items[1].error);
  EXPECT_THAT(engine_.calls(), SizeIs(2));
}

TEST_F(SchedulerTest, LeavesARequestByItselfItsOwnWayWithErrors) {
  submit("a", {"bad", "1"});
  EXPECT_EQ(error_of("a"), ErrorCode::kCorruptData);
  EXPECT_EQ(engine_.calls()[0].how.on_error, OnError::kFail);
}

TEST_F(SchedulerTest, RunsABatchThatFailedAsAWholeOneByOne) {
  hold_one();
  submit("a", {"1", "2"});
  submit("b", {"fatal"});
  submit("c", {"3"});
  engine_.let_through();
  EXPECT_THAT(replies_.of("a").items, SizeIs(2));
  EXPECT_EQ(error_of("b"), ErrorCode::kOutOfMemory);
  EXPECT_EQ(replies_.of("c").items.front().name, "3");
  EXPECT_NE(replies_.of("c").batch, replies_.of("a").batch);
  EXPECT_THAT(engine_.calls(), SizeIs(5));
  scheduler_.drain();
  EXPECT_EQ(scheduler_.stats().repeated_batches, 1);
}

TEST_F(SchedulerTest, RefusesWhatHasNoRoom) {
  hold_one();
  submit("a", std::vector<std::string>(99, "a"));
  test::expect_error(ErrorCode::kUnavailable, "the batcher holds 100 of at most 100",
                     [&] { submit("b"); });
  test::expect_error(ErrorCode::kInvalidArgument, "at most 100",
                     [&] { submit("c", std::vector<std::string>(101, "c")); });
  EXPECT_EQ(scheduler_.stats().items, 100);
  engine_.let_through();
  (void)replies_.of("a");
  submit("d");
  (void)replies_.of("d");
}

TEST_F(SchedulerTest, RefusesRowsAndBytesToo) {
  hold_one();
  const auto check = [&](const Load& load) { scheduler_.check_room(load); };
  check({.items = 99, .bytes = 999, .rows = 990});
  test::expect_error(ErrorCode::kUnavailable, "bytes", [&] { check({.bytes = 1000}); });
  test::expect_error(ErrorCode::kUnavailable, "rows", [&] { check({.rows = 991}); });
  test::expect_error(ErrorCode::kInvalidArgument, "rows", [&] { check({.rows = 1001}); });
}

TEST_F(SchedulerTest, CancelsWhatWaits) {
  hold_one();
  const Ticket ticket = submit("a");
  EXPECT_TRUE(scheduler_.cancel(ticket));
  EXPECT_EQ(error_of("a"), ErrorCode::kCancelled);
  EXPECT_EQ(replies_.of("a").batch, 0U);
  EXPECT_FALSE(scheduler_.cancel(ticket));
  EXPECT_FALSE(scheduler_.cancel({.number = 77}));
  engine_.let_through();
  scheduler_.drain();
  EXPECT_THAT(engine_.calls(), SizeIs(1));
}

TEST_F(SchedulerTest, CancelsWhatWasStoppedBeforeItCame) {
  std::stop_source stop;
  stop.request_stop();
  submit("a", {.bounds = {.stop = stop.get_token()}});
  EXPECT_EQ(error_of("a"), ErrorCode::kCancelled);
  scheduler_.stop();
  expect_one_end_each(1);
}

TEST_F(SchedulerTest, StopsACallThatNobodyNeeds) {
  engine_.hold();
  const Ticket ticket = submit("a");
  engine_.wait_for_calls(1);
  EXPECT_TRUE(scheduler_.cancel(ticket));
  EXPECT_EQ(error_of("a"), ErrorCode::kCancelled);
  scheduler_.drain();
  while (scheduler_.stats().running_batches > 0) std::this_thread::yield();  // though it is held
  expect_one_end_each(1);
}

TEST_F(SchedulerTest, DoesNotStopACallThatSomebodyNeeds) {
  hold_one();
  submit("a", std::vector<std::string>(5, "a"));
  const Ticket ticket = submit("b", std::vector<std::string>(5, "b"));
  engine_.wait_for_calls(2);
  EXPECT_TRUE(scheduler_.cancel(ticket));
  EXPECT_EQ(error_of("b"), ErrorCode::kCancelled);
  engine_.let_through();
  EXPECT_THAT(replies_.of("a").items, SizeIs(5));
  scheduler_.stop();
  expect_one_end_each(3);
}

TEST_F(SchedulerTest, EndsRequestsAtTheirDeadline) {
  hold_one();
  const auto soon = Clock::now() + milliseconds(20);
  submit("waits", {.bounds = {.deadline = soon}});
  submit("passed", {.bounds = {.deadline = Clock::now() - hours(1)}});
  EXPECT_EQ(error_of("waits"), ErrorCode::kDeadline);
  EXPECT_EQ(error_of("passed"), ErrorCode::kDeadline);
  EXPECT_EQ(scheduler_.stats().expired, 2);
  EXPECT_EQ(scheduler_.stats().queued_requests, 0);
}

TEST_F(SchedulerTest, EndsARunningRequestAtItsDeadline) {
  engine_.hold();
  submit("runs", {.bounds = {.deadline = Clock::now() + milliseconds(50)}});
  EXPECT_EQ(error_of("runs"), ErrorCode::kDeadline);
}

TEST_F(SchedulerTest, DrainsWhatItHasAccepted) {
  hold_one();
  submit("a");
  submit("large", std::vector<std::string>(20, "large"));
  std::jthread drain([&] { scheduler_.drain(); });
  engine_.let_through();
  drain.join();
  EXPECT_THAT(replies_.order(), SizeIs(3));
  test::expect_error(ErrorCode::kUnavailable, "has ended", [&] { submit("late"); });
}

TEST_F(SchedulerTest, StopsWithEverythingCancelled) {
  hold_one();
  submit("a");
  submit("large", std::vector<std::string>(20, "large"));
  scheduler_.stop();
  EXPECT_THAT(replies_.order(), SizeIs(3));
  for (const char* name : {"first", "a", "large"}) {
    EXPECT_EQ(error_of(name), ErrorCode::kCancelled) << name;
  }
  test::expect_error(ErrorCode::kUnavailable, "has ended", [&] { submit("late"); });
  scheduler_.stop();
}

TEST_F(SchedulerTest, SurvivesACallbackThatThrows) {
  auto request = std::make_shared<Request>();
  request->items.push_back(test::named_item("a"));
  request->load = {.items = 1};
  request->done = [](const BatchReply&) { throw std::runtime_error("of the caller"); };
  scheduler_.submit(request);
  submit("b");
  EXPECT_FALSE(replies_.of("b").error);
}

TEST_F(SchedulerTest, CountsRequestsBatchesAndProgress) {
  const BatcherStats before = scheduler_.stats();
  hold_one();
  submit("a", {"bad"});
  submit("b");
  const BatcherStats during = scheduler_.stats();
  EXPECT_EQ(during.requests, 3);
  EXPECT_EQ(during.queued_requests, 2);
  EXPECT_EQ(during.rows, 30);
  EXPECT_EQ(during.bytes, 3);
  EXPECT_EQ(during.running_batches, 1);
  engine_.let_through();
  scheduler_.drain();
  scheduler_.stop();
  const BatcherStats after = scheduler_.stats();
  EXPECT_EQ(after.accepted, 3);
  EXPECT_EQ(after.completed, 2);
  EXPECT_EQ(after.failed, 1);
  EXPECT_EQ(after.batches, 2);
  EXPECT_EQ(after.batch_requests, 3);
  EXPECT_EQ(after.batch_items, 3);
  EXPECT_EQ(after.batch_rows, 30);
  EXPECT_EQ(after.requests + after.items + after.bytes + after.rows + after.queued_requests, 0);
  EXPECT_GT(after.last_progress, before.last_progress);
  EXPECT_GE(after.last_movement, after.last_progress);
  EXPECT_GT(after.queue_seconds, 0);
}

}  // namespace
}  // namespace fovea::batching
