// Whatever happens at the same time: every request that was accepted has one reply.
#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>

#include "batcher/fake_engine.h"
#include "support/property.h"

namespace fovea::batching {
namespace {

constexpr std::int64_t kMostItems = 40;

/// Counts the replies of requests.
struct Ledger {
  std::atomic<std::int64_t> accepted = 0;
  std::atomic<std::int64_t> refused = 0;
  std::atomic<std::int64_t> replied = 0;
  std::atomic<std::int64_t> with_rows = 0;
  std::atomic<std::int64_t> cancelled = 0;  // by a call that said so
  std::atomic<std::int64_t> said_cancelled = 0;
};

EncodeOptions random_options(std::mt19937_64& random, const std::stop_token& stop) {
  EncodeOptions how;
  how.dtype = static_cast<RowDType>(test::uniform(random, 0, 2));
  how.on_error = static_cast<OnError>(test::uniform(random, 0, 1));
  if (test::uniform(random, 0, 9) == 0) {
    how.bounds.deadline = Clock::now() + std::chrono::microseconds(test::uniform(random, -10, 300));
  }
  if (test::uniform(random, 0, 9) == 0) how.bounds.stop = stop;
  return how;
}

/// The reply has the rows of the request, in its order, or an error.
void check(const BatchReply& reply, std::int64_t first, std::int64_t count, Ledger& ledger) {
  ++ledger.replied;
  if (reply.error) {
    EXPECT_TRUE(reply.items.empty());
    if (reply.error->code() == ErrorCode::kCancelled) ++ledger.said_cancelled;
    return;
  }
  ++ledger.with_rows;
  ASSERT_EQ(std::ssize(reply.items), count);
  for (std::int64_t i = 0; i < count; ++i) {
    EXPECT_EQ(reply.items[static_cast<std::size_t>(i)].rows, first + i);
  }
}

/// What one thread does: submits, cancels, looks.
void act(Scheduler& scheduler, std::uint64_t seed, Ledger& ledger) {
  std::mt19937_64 random(seed);
  std::stop_source stop;
  for (int round = 0; round < 60; ++round) {
    const std::int64_t count = test::uniform(random, 1, 14);
    const auto first = static_cast<std::int64_t>(seed * 1000) + 20 * round;
    auto request = std::make_shared<Request>();
    for (std::int64_t i = 0; i < count; ++i) {
      constexpr const char* kNames[] = {"bad", "fatal"};
      const std::int64_t kind = test::uniform(random, 0, 40);
      request->items.push_back(test::named_item(kind < 2 ? kNames[kind] : "good", first + i));
    }
    request->load = {.items = count, .bytes = count, .rows = test::uniform(random, 0, 120)};
    request->how = random_options(random, stop.get_token());
    request->done = [&ledger, first, count](const BatchReply& reply) {
      check(reply, first, count, ledger);
    };
    try {
      const Ticket ticket = scheduler.submit(request);
      request->on_stop.emplace(request->how.bounds.stop,
                               [&scheduler, ticket] { (void)scheduler.cancel(ticket); });
      ++ledger.accepted;
      if (test::uniform(random, 0, 4) == 0 && scheduler.cancel(ticket)) ++ledger.cancelled;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kUnavailable);
      ++ledger.refused;
    }
    EXPECT_LE(scheduler.stats().items, kMostItems);
  }
  stop.request_stop();
}

BatcherOptions bounds(std::mt19937_64& random) {
  return {.max_items = kMostItems,
          .max_bytes = 1000,
          .max_rows = 2000,
          .max_batch_rows = 100,
          .max_batch_items = 10,
          .max_delay = std::chrono::microseconds(test::uniform(random, 0, 500))};
}

TEST(ConcurrentRequests, HaveOneReplyEach) {
  test::for_all(20, [](std::mt19937_64& random) {
    test::FakeEngine engine;
    Ledger ledger;
    Scheduler scheduler(engine.encode(), bounds(random));
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, seed = random() % 1'000'000] { act(scheduler, seed, ledger); });
    }
    threads.clear();
    scheduler.drain();
    EXPECT_EQ(ledger.replied, ledger.accepted);
    EXPECT_GE(ledger.said_cancelled, ledger.cancelled);
    const BatcherStats stats = scheduler.stats();
    EXPECT_EQ(stats.accepted, ledger.accepted);
    EXPECT_EQ(stats.completed, ledger.with_rows);
    EXPECT_EQ(stats.completed + stats.failed + stats.cancelled + stats.expired, ledger.replied);
    EXPECT_EQ(stats.requests + stats.items + stats.bytes + stats.rows + stats.queued_requests, 0);
  });
}

TEST(ConcurrentRequests, HaveOneReplyEachIfTheBatcherStops) {
  test::for_all(20, [](std::mt19937_64& random) {
    test::FakeEngine engine;
    Ledger ledger;
    Scheduler scheduler(engine.encode(), bounds(random));
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&, seed = random() % 1'000'000] { act(scheduler, seed, ledger); });
    }
    std::this_thread::sleep_for(std::chrono::microseconds(test::uniform(random, 0, 2000)));
    scheduler.stop();
    const std::int64_t replied = ledger.replied;
    threads.clear();
    EXPECT_EQ(ledger.replied, replied) << "a callback after stop()";
    EXPECT_EQ(ledger.replied, ledger.accepted);
  });
}

}  // namespace
}  // namespace fovea::batching
