#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "serve/http/message.h"

namespace fovea::serve {

/// The share of a server that one client holds, over all its connections. Any thread may change it.
struct Client {
  std::string name;
  std::atomic<std::int64_t> connections = 0;
  std::atomic<std::size_t> body_bytes = 0;  ///< of requests that are read or worked on
};

/// The client whose share of the server a request uses; empty: there is none.
[[nodiscard]] inline std::string client_name(const RequestHead& head) {
  return head.client ? head.client->name : "";
}

/// The clients that hold something. Thread-safe.
class Clients {
 public:
  /// The client of that name (Accepted::client). It is known as long as it is held.
  [[nodiscard]] std::shared_ptr<Client> find(const std::string& name);
  /// The number of clients that are known, and of some that have gone.
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

class Connections;

/// A place among the connections, of a client. It is given back when this goes.
class ConnectionPlace {
 public:
  /// @param connections must outlive this.
  ConnectionPlace(Connections& connections, std::shared_ptr<Client> client);
  ~ConnectionPlace();
  ConnectionPlace(const ConnectionPlace&) = delete;
  ConnectionPlace& operator=(const ConnectionPlace&) = delete;

  [[nodiscard]] const std::shared_ptr<Client>& client() const noexcept { return client_; }
  /// Whether the client holds more than half of all places.
  [[nodiscard]] bool is_of_a_crowd() const noexcept;

 private:
  Connections& connections_;
  std::shared_ptr<Client> client_;
};

/// Counts open connections, up to a limit. Thread-safe.
class Connections {
 public:
  explicit Connections(std::int64_t limit) : limit_(limit) {}

  /// Called, on any thread, when there is room again. Set before the first connection.
  void on_room(std::function<void()> action) { on_room_ = std::move(action); }
  /// A place for a connection of the client of that name.
  [[nodiscard]] std::shared_ptr<ConnectionPlace> take(const std::string& client);
  [[nodiscard]] bool is_full() const;
  [[nodiscard]] std::int64_t limit() const noexcept { return limit_; }
  [[nodiscard]] std::int64_t open() const;
  [[nodiscard]] std::int64_t accepted() const;
  /// @return whether all of them ended in time.
  [[nodiscard]] bool wait_none(std::chrono::milliseconds timeout);

 private:
  friend ConnectionPlace;
  void add();
  void release();

  const std::int64_t limit_;
  std::function<void()> on_room_;
  Clients clients_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::int64_t open_ = 0;
  std::int64_t accepted_ = 0;
};

}  // namespace fovea::serve
