#include "serve/http/client_watch.h"

#include <utility>

#include "serve/http/operation.h"

namespace fovea::serve {

ClientWatch::ClientWatch(Stream& stream, std::shared_ptr<Event> changed, std::size_t most_bytes)
    : stream_(stream), changed_(std::move(changed)), most_bytes_(most_bytes) {}

void ClientWatch::start(std::shared_ptr<void> owner) {
  stream_.set_deadline(Clock::time_point::max());
  const auto end = [this, owner = std::move(owner)](const std::exception_ptr&) {
    if (state_ != State::kLeft) state_ = State::kOff;
    changed_->notify();
  };
  state_ = State::kRuns;
  try {
    spawn(stream_.executor(), run(), end);
  } catch (...) {
    state_ = State::kOff;
    throw;
  }
}

Awaitable<void> ClientWatch::run() {
  while (state_ == State::kRuns && stream_.input().view().size() < most_bytes_) {
    const IoResult got = co_await stream_.fill(most_bytes_);
    if (got.bytes > 0) {
      changed_->notify();
      continue;
    }
    if (state_ == State::kRuns) state_ = State::kLeft;
    co_return;
  }
}

Awaitable<void> ClientWatch::stop() {
  if (state_ == State::kRuns) {
    state_ = State::kStops;
    stream_.cancel();
  }
  while (state_ == State::kStops) co_await changed_->wait();
}

}  // namespace fovea::serve
