#pragma once

#include <exception>
#include <utility>

#include "serve/http/asio.h"

namespace fovea::serve {

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
