#include "serve/http/deadline.h"

#include <new>

#include "serve/http/operation.h"

namespace fovea::serve {

struct Deadline::State {
  asio::steady_timer timer;
  std::function<void()> on_expiry;
  Clock::time_point due = Clock::time_point::max();
  Clock::time_point armed_for = Clock::time_point::max();  ///< max: the timer does not run
  bool has_expired = false;
};

Deadline::Deadline(const asio::any_io_executor& executor, std::function<void()> on_expiry)
    : state_(std::make_shared<State>(
          State{.timer = asio::steady_timer(executor), .on_expiry = std::move(on_expiry)})) {}

Deadline::~Deadline() {
  boost::system::error_code ignored;
  state_->timer.cancel(ignored);
}

bool Deadline::has_expired() const noexcept { return state_->has_expired; }

void Deadline::set(Clock::time_point due) {
  state_->due = due;
  state_->has_expired = false;
  if (due < state_->armed_for) arm(state_);
}

void Deadline::arm(const std::shared_ptr<State>& state) try {
  const Clock::time_point time = state->due;
  state->armed_for = time;
  state->timer.expires_at(time);
  state->timer.async_wait([weak = std::weak_ptr(state), time](boost::system::error_code error) {
    const std::shared_ptr<State> owner = weak.lock();
    if (error || !owner || owner->armed_for != time) return;  // another wait took over
    owner->armed_for = Clock::time_point::max();
    if (owner->due == Clock::time_point::max()) return;
    if (Clock::now() < owner->due) return arm(owner);
    expire(*owner);
  });
} catch (const std::bad_alloc&) {
  // An operation whose time cannot be watched must not go on.
  state->armed_for = Clock::time_point::max();
  expire(*state);
}

void Deadline::expire(State& state) {
  state.has_expired = true;
  state.on_expiry();
}

Awaitable<void> Event::wait_until(Clock::time_point time) {
  timer_.expires_at(time);
  Operation wait;
  timer_.async_wait(wait.done());
  co_await wait.wait();
}

}  // namespace fovea::serve
