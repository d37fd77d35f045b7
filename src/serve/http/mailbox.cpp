#include "serve/http/mailbox.h"

#include <new>

namespace fovea::serve {

Mailbox::Mailbox(asio::any_io_executor executor, std::shared_ptr<Event> changed)
    : executor_(std::move(executor)), changed_(std::move(changed)) {}

void Mailbox::put(Reply reply) noexcept {
  const std::lock_guard lock(mutex_);
  if (!executor_) return;
  reply_ = std::move(reply);
  try {
    asio::post(*executor_, [changed = changed_] { changed->notify(); });
  } catch (const std::bad_alloc&) {
    // The connection looks again at its deadline.
  }
}

std::optional<Reply> Mailbox::take() {
  const std::lock_guard lock(mutex_);
  return std::exchange(reply_, std::nullopt);
}

void Mailbox::close() noexcept {
  const std::lock_guard lock(mutex_);
  executor_.reset();
  changed_.reset();
  reply_.reset();
}

}  // namespace fovea::serve
