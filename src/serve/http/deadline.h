#pragma once

#include <functional>
#include <memory>

#include "serve/http/asio.h"
#include "serve/http/message.h"

namespace fovea::serve {

/// Calls back when a time has come that may be moved at any moment. Moving it later, as every
/// piece of a body does, costs nothing. For one thread of an io_context.
class Deadline {
 public:
  /// @param on_expiry called on the executor, unless this is gone; also at once, where there is no
  /// memory to wait for the time.
  Deadline(const asio::any_io_executor& executor, std::function<void()> on_expiry);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  void set(Clock::time_point due);
  /// Whether the time that was set last has come.
  [[nodiscard]] bool has_expired() const noexcept;

 private:
  struct State;
  static void arm(const std::shared_ptr<State>& state);
  static void expire(State& state);
  std::shared_ptr<State> state_;
};

/// Lets one coroutine wait for a change that others announce. For one thread of an io_context.
class Event {
 public:
  explicit Event(const asio::any_io_executor& executor) : timer_(executor) {}

  /// Wakes the coroutine that waits now; does nothing if there is none.
  void notify() { timer_.cancel(); }
  /// Until notify() or that time.
  [[nodiscard]] Awaitable<void> wait_until(Clock::time_point time);
  [[nodiscard]] Awaitable<void> wait() { return wait_until(Clock::time_point::max()); }

 private:
  asio::steady_timer timer_;
};

}  // namespace fovea::serve
