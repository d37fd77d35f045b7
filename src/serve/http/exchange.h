#pragma once

#include <atomic>
#include <functional>
#include <stop_token>

#include "serve/http/message.h"

namespace fovea::serve {

/// A request on its way to its reply. Code that works on it holds it by shared_ptr; if the last of
/// these goes without a reply, the client gets a 500 rather than silence. All functions may be
/// called from any thread.
class Exchange {
 public:
  using Send = std::function<void(Reply)>;

  /// @param send takes the reply, exactly once, on the thread that replies; must not throw.
  Exchange(Request request, Send send);
  ~Exchange();
  Exchange(const Exchange&) = delete;
  Exchange& operator=(const Exchange&) = delete;

  [[nodiscard]] const Request& request() const noexcept { return request_; }

  /// Sends the reply; all but the first are dropped.
  void reply(Reply reply) noexcept;
  /// Sends the exception that is handled right now, as an error. Where there is no memory for its
  /// text, that is 503 without a body.
  void fail() noexcept;

  /// Stop is requested when the client has left, or is not worth waiting for: work for it may end.
  [[nodiscard]] std::stop_token gone() const noexcept { return gone_.get_token(); }
  /// For the transport: the client has left.
  void leave() noexcept;

 private:
  Request request_;
  Send send_;
  std::atomic<bool> replied_ = false;
  std::stop_source gone_;
};

}  // namespace fovea::serve
