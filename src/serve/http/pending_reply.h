#pragma once

#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "serve/http/deadline.h"
#include "serve/http/message.h"

namespace fovea::serve {

/// The reply that a connection waits for: any thread puts it, the thread of the connection takes
/// it. The connection may have gone by then.
class PendingReply {
 public:
  /// @param changed notified on the executor when there is a reply.
  PendingReply(asio::any_io_executor executor, std::shared_ptr<Event> changed)
      : executor_(std::move(executor)), changed_(std::move(changed)) {}

  /// From any thread. Without effect once it is closed.
  void put(Reply reply) noexcept {
    const std::lock_guard lock(mutex_);
    if (!executor_) return;
    reply_ = std::move(reply);
    try {
      asio::post(*executor_, [changed = changed_] { changed->notify(); });
    } catch (const std::bad_alloc&) {
      // The connection looks again at its deadline.
    }
  }
  /// For the connection: the reply, if it is there.
  [[nodiscard]] std::optional<Reply> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(reply_, std::nullopt);
  }
  /// For the connection, which wants no reply any more. Afterwards the executor may go.
  void close() noexcept {
    const std::lock_guard lock(mutex_);
    executor_.reset();
    changed_.reset();
    reply_.reset();
  }

 private:
  std::mutex mutex_;
  std::optional<asio::any_io_executor> executor_;  ///< nothing: closed
  std::shared_ptr<Event> changed_;
  std::optional<Reply> reply_;
};

}  // namespace fovea::serve
