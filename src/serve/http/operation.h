#pragma once

#include <cstddef>
#include <exception>
#include <optional>
#include <utility>

#include "serve/http/asio.h"

namespace fovea::serve {

/// One asynchronous operation that a coroutine starts and then waits for:
///
///   Operation read;
///   socket.async_read_some(buffer, read.done());
///   co_await read.wait();
///
/// asio::use_awaitable would start it while the coroutine is suspended, where an exception ends the
/// process (await_suspend in boost/asio/impl/awaitable.hpp is noexcept). Here what the start
/// throws, for want of memory, goes to the coroutine like any other exception. For one thread of an
/// io_context; outlives the operation.
class Operation {
 public:
  /// The completion handler.
  class Done {
   public:
    explicit Done(Operation& operation) noexcept : operation_(&operation) {}
    Done(Done&& other) noexcept : operation_(std::exchange(other.operation_, nullptr)) {}
    Done(const Done&) = delete;
    Done& operator=(const Done&) = delete;
    Done& operator=(Done&&) = delete;
    ~Done() {
      if (operation_ != nullptr) operation_->drop();
    }
    void operator()(boost::system::error_code error, std::size_t bytes = 0) {
      std::exchange(operation_, nullptr)->end(error, bytes);
    }

   private:
    Operation* operation_;
  };

  Operation() = default;
  Operation(const Operation&) = delete;
  Operation& operator=(const Operation&) = delete;

  /// To start the operation with, once.
  [[nodiscard]] Done done() noexcept { return Done(*this); }
  /// Until it has ended.
  [[nodiscard]] Awaitable<void> wait() {
    if (has_ended_) co_return;
    const auto keep = [this](auto waiter) { waiter_.emplace(std::move(waiter)); };
    asio::use_awaitable_t<> token;
    co_await asio::async_initiate<asio::use_awaitable_t<>, void()>(keep, token);
  }
  [[nodiscard]] boost::system::error_code error() const noexcept { return error_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }

 private:
  /// Resumes the coroutine, which it owns.
  using Waiter = asio::async_result<asio::use_awaitable_t<>, void()>::handler_type;

  void end(boost::system::error_code error, std::size_t bytes) {
    error_ = error;
    bytes_ = bytes;
    has_ended_ = true;
    if (!waiter_) return;
    Waiter waiter = std::move(*waiter_);
    waiter_.reset();
    waiter();
  }
  /// It will never end: so the coroutine goes, and this with it.
  void drop() {
    if (!waiter_) return;
    const Waiter waiter = std::move(*waiter_);
    waiter_.reset();
  }

  std::optional<Waiter> waiter_;
  boost::system::error_code error_;
  std::size_t bytes_ = 0;
  bool has_ended_ = false;
};

template <typename Ended>
[[nodiscard]] Awaitable<void> run_to_end(Awaitable<void> coroutine, Ended ended) {
  std::exception_ptr thrown;
  try {
    co_await std::move(coroutine);  // NOLINT(bugprone-use-after-move): it is not
  } catch (...) {
    thrown = std::current_exception();
  }
  ended(thrown);
}

/// Lets a coroutine run by itself, on the thread of its executor, from which this is called: until
/// it first waits it runs before this returns. asio::co_spawn would begin with an operation that
/// ends the process without memory, for the reason that Operation is there for.
/// @param ended called at its end with what it threw, or null. Must not throw.
/// @throws std::bad_alloc before anything has run.
template <typename Ended>
void spawn(const asio::any_io_executor& executor, Awaitable<void> coroutine, Ended ended) {
  using Root = asio::async_result<asio::use_awaitable_t<>, void()>::handler_type;
  Root(run_to_end(std::move(coroutine), std::move(ended)), executor).launch();
}

}  // namespace fovea::serve
