#include "serve/http/operation.h"

#include <gtest/gtest.h>

#include <exception>
#include <memory>
#include <new>
#include <string>

namespace fovea::serve {
namespace {

using std::chrono::milliseconds;

/// Runs a coroutine to its end. @return what it threw.
std::exception_ptr run(Awaitable<void> coroutine) {
  asio::io_context context;
  std::exception_ptr thrown;
  spawn(context.get_executor(), std::move(coroutine),
        [&](const std::exception_ptr& error) { thrown = error; });
  context.run();
  return thrown;
}

/// As asynchronous functions of Asio do without memory.
void start_without_memory(Operation::Done /*done*/) { throw std::bad_alloc(); }

// With asio::use_awaitable the process would end here.
TEST(Operation, ThrowsToItsCoroutineWhatItsStartThrows) {
  std::string seen;
  const auto coroutine = [&]() -> Awaitable<void> {
    Operation operation;
    try {
      start_without_memory(operation.done());
      co_await operation.wait();
    } catch (const std::bad_alloc&) {
      seen = "no memory";
    }
  };
  EXPECT_EQ(run(coroutine()), nullptr);
  EXPECT_EQ(seen, "no memory");
}

TEST(Operation, EndsACoroutineThatDoesNotCatch) {
  const auto held = std::make_shared<int>(1);
  const auto coroutine = [](std::shared_ptr<int> /*copy*/) -> Awaitable<void> {
    Operation operation;
    start_without_memory(operation.done());
    co_await operation.wait();
  };
  EXPECT_THROW(std::rethrow_exception(run(coroutine(held))), std::bad_alloc);
  EXPECT_EQ(held.use_count(), 1);
}

TEST(Operation, HasTheResultsThatItEndedWith) {
  boost::system::error_code error;
  std::size_t bytes = 0;
  bool is_cancelled = false;
  const auto coroutine = [&]() -> Awaitable<void> {
    Operation now;
    now.done()(asio::error::eof, 7);  // ends before anybody waits
    co_await now.wait();
    error = now.error();
    bytes = now.bytes();
    asio::steady_timer timer(co_await asio::this_coro::executor, milliseconds(1));
    Operation later;
    timer.async_wait(later.done());
    co_await later.wait();
    is_cancelled = static_cast<bool>(later.error());
  };
  EXPECT_EQ(run(coroutine()), nullptr);
  EXPECT_EQ(error, asio::error::eof);
  EXPECT_EQ(bytes, 7U);
  EXPECT_FALSE(is_cancelled);
}

TEST(Operation, TakesItsCoroutineAlongIfItNeverEnds) {
  const auto held = std::make_shared<int>(1);
  {
    asio::io_context context;
    asio::steady_timer timer(context, std::chrono::hours(1));
    const auto coroutine = [&timer](std::shared_ptr<int> /*copy*/) -> Awaitable<void> {
      Operation operation;
      timer.async_wait(operation.done());
      co_await operation.wait();
    };
    spawn(context.get_executor(), coroutine(held), [](const std::exception_ptr&) {});
    EXPECT_EQ(held.use_count(), 2);
  }
  EXPECT_EQ(held.use_count(), 1);
}

}  // namespace
}  // namespace fovea::serve
