#include "serve/http/clients.h"

namespace fovea::serve {

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
