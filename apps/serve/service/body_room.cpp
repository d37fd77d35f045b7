#include "serve/service/body_room.h"

#include <utility>

namespace fovea::serve {

BodyRoom::BodyRoom(MemoryBudget& budget, std::shared_ptr<Client> client) noexcept
    : budget_(budget), client_(std::move(client)) {}

BodyRoom::~BodyRoom() {
  if (client_) client_->body_bytes -= held_;
  budget_.release(held_);
}

bool BodyRoom::grow(std::int64_t bytes) noexcept {
  const std::int64_t more = bytes - held_;
  if (more <= 0) return true;
  if (!budget_.reserve(more)) return false;
  if (!take_share(more)) {
    budget_.release(more);
    return false;
  }
  held_ = bytes;
  return true;
}

/// Once the budget has given it.
bool BodyRoom::take_share(std::int64_t more) noexcept {
  if (!client_) return true;
  const std::int64_t own = client_->body_bytes += more;
  if (own <= budget_.capacity() - budget_.used()) return true;
  client_->body_bytes -= more;
  return false;
}

}  // namespace fovea::serve
