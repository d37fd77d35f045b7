#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "serve/http/message.h"

namespace fovea::serve {

/// What one client holds of a server, over all its connections. Any thread may change it.
struct Client {
  std::string name;
  std::atomic<std::int64_t> connections = 0;
  std::atomic<std::size_t> body_bytes = 0;  ///< of requests that are read or worked on
};

/// Whose share of the server a request uses; empty: nobody's.
[[nodiscard]] inline std::string client_name(const RequestHead& head) {
  return head.client ? head.client->name : "";
}

/// The clients that hold something. Thread-safe.
class Clients {
 public:
  /// The client of that name (Accepted::client). It is known as long as somebody holds it.
  [[nodiscard]] std::shared_ptr<Client> find(const std::string& name);
  /// Of those that are known, and some that have gone.
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return clients_.size();
  }

 private:
  void forget_expired();

  mutable std::mutex mutex_;
  std::unordered_map<std::string, std::weak_ptr<Client>> clients_;
  std::size_t forget_at_ = 64;  ///< entries at which those that expired are looked for
};

}  // namespace fovea::serve
