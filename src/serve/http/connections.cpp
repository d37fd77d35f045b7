#include "serve/http/connections.h"

#include <utility>

namespace fovea::serve {

ConnectionPlace::ConnectionPlace(Connections& connections, std::shared_ptr<Client> client)
    : connections_(connections), client_(std::move(client)) {
  ++client_->connections;
  connections_.add();
}

ConnectionPlace::~ConnectionPlace() {
  --client_->connections;
  connections_.release();
}

bool ConnectionPlace::is_of_a_crowd() const noexcept {
  return 2 * client_->connections > connections_.limit();
}

std::shared_ptr<ConnectionPlace> Connections::take(const std::string& client) {
  return std::make_shared<ConnectionPlace>(*this, clients_.find(client));
}

void Connections::add() {
  const std::lock_guard lock(mutex_);
  ++open_;
  ++accepted_;
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

bool Connections::wait_none(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, timeout, [&] { return open_ == 0; });
}

std::shared_ptr<Client> Clients::find(const std::string& name) {
  const std::lock_guard lock(mutex_);
  if (clients_.size() >= forget_at_) forget_expired();
  std::weak_ptr<Client>& known = clients_[name];
  std::shared_ptr<Client> client = known.lock();
  if (!client) {
    client = std::make_shared<Client>();
    client->name = name;
    known = client;
  }
  return client;
}

/// Every entry is looked at once for each entry that is added, on average.
void Clients::forget_expired() {
  std::erase_if(clients_, [](const auto& entry) { return entry.second.expired(); });
  constexpr std::size_t kFewest = 64;
  forget_at_ = kFewest + 2 * clients_.size();
}

}  // namespace fovea::serve
