#include "serve/http/connections.h"

namespace fovea::serve {

std::shared_ptr<void> Connections::take() {
  // Before the pointer is made: without memory for it, its deleter runs at once.
  {
    const std::lock_guard lock(mutex_);
    ++open_;
    ++accepted_;
  }
  return {this, [](Connections* connections) { connections->release(); }};
}

void Connections::release() {
  bool was_full = false;
  {
    const std::lock_guard lock(mutex_);
    was_full = open_-- >= limit_;
    if (open_ == 0) changed_.notify_all();
  }
  if (was_full && on_room_) on_room_();
}

bool Connections::is_full() const {
  const std::lock_guard lock(mutex_);
  return open_ >= limit_;
}

std::int64_t Connections::open() const {
  const std::lock_guard lock(mutex_);
  return open_;
}

std::int64_t Connections::accepted() const {
  const std::lock_guard lock(mutex_);
  return accepted_;
}

bool Connections::wait_none(std::chrono::milliseconds patience) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, patience, [&] { return open_ == 0; });
}

}  // namespace fovea::serve
