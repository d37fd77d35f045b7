#pragma once

#include <memory>
#include <mutex>
#include <optional>

#include "serve/http/deadline.h"
#include "serve/http/message.h"

namespace fovea::serve {

/// Takes the reply to one request from any thread to that of its connection, which may be gone by
/// then.
class Mailbox {
 public:
  /// @param changed notified on the executor when there is a reply.
  Mailbox(asio::any_io_executor executor, std::shared_ptr<Event> changed);

  /// From any thread. Without effect once it is closed.
  void put(Reply reply) noexcept;
  /// For the connection: the reply, if it is there.
  [[nodiscard]] std::optional<Reply> take();
  /// For the connection: nothing is wanted any more. Afterwards the executor may go.
  void close() noexcept;

 private:
  std::mutex mutex_;
  std::optional<asio::any_io_executor> executor_;  ///< nothing: closed
  std::shared_ptr<Event> changed_;
  std::optional<Reply> reply_;
};

}  // namespace fovea::serve
