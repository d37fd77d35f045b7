#include "serve/service/body_room.h"

#include <utility>

namespace fovea::serve {

BodyRoom::BodyRoom(Budget& budget, std::shared_ptr<Client> client) noexcept
    : budget_(budget), client_(std::move(client)), held_(budget) {}

BodyRoom::~BodyRoom() {
  if (client_) client_->body_bytes -= held_.bytes();
}

bool BodyRoom::grow(std::size_t bytes) noexcept {
  if (bytes <= held_.bytes()) return true;
  const std::size_t more = bytes - held_.bytes();
  if (!held_.try_grow(more)) return false;
  if (take_share(more)) return true;
  held_.shrink(more);
  return false;
}

/// Once the budget has given it.
bool BodyRoom::take_share(std::size_t more) noexcept {
  if (!client_) return true;
  const std::size_t own = client_->body_bytes += more;
  if (own <= budget_.capacity() - budget_.used()) return true;
  client_->body_bytes -= more;
  return false;
}

}  // namespace fovea::serve
