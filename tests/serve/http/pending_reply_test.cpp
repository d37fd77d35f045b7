#include "serve/http/pending_reply.h"

#include <gtest/gtest.h>

#include <thread>

#include "serve/http/operation.h"

namespace fovea::serve {
namespace {

TEST(PendingReply, WakesTheConnectionFromAnotherThread) {
  asio::io_context context(1);
  const auto changed = std::make_shared<Event>(context.get_executor());
  PendingReply pending(context.get_executor(), changed);
  EXPECT_FALSE(pending.take());
  int status = 0;
  const auto wait = [&]() -> Awaitable<void> {
    std::optional<Reply> reply = pending.take();
    while (!reply) {
      co_await changed->wait();
      reply = pending.take();
    }
    status = reply->status;
  };
  spawn(context.get_executor(), wait(), [](const std::exception_ptr&) {});
  const std::jthread other([&] { pending.put({.status = 201}); });
  context.run();
  EXPECT_EQ(status, 201);
  EXPECT_FALSE(pending.take()) << "it is taken once";
}

TEST(PendingReply, TouchesNothingOnceItIsClosed) {
  auto context = std::make_unique<asio::io_context>(1);
  auto changed = std::make_shared<Event>(context->get_executor());
  PendingReply pending(context->get_executor(), changed);
  pending.put({.status = 200});
  pending.close();
  EXPECT_FALSE(pending.take()) << "nobody wants it any more";
  changed.reset();
  context.reset();
  pending.put({.status = 200});
  EXPECT_FALSE(pending.take());
}

}  // namespace
}  // namespace fovea::serve
