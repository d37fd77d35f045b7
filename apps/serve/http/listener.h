#pragma once

#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>

#include "fovea/log.h"
#include "serve/http/connections.h"
#include "serve/http/deadline.h"
#include "serve/http/listening_socket.h"

namespace fovea::serve {

/// Accepts connections, many at a time, while there are fewer than the limit. Lives on one thread
/// of an io_context, apart from on_room().
class Listener {
 public:
  using Take = std::function<void(Accepted, std::shared_ptr<void> place)>;

  /// @param take gets each connection. @param log may be null. All must outlive this.
  Listener(asio::io_context& context, FileDescriptor descriptor, Connections& connections,
           Take take, LogSink* log);

  void start();
  /// Frees the address; connections in the backlog are refused.
  void close();
  /// From any thread: there are fewer connections than the limit.
  void notify_room();

 private:
  [[nodiscard]] Awaitable<void> run();
  /// @return 0, or the errno that asks for a pause.
  [[nodiscard]] int accept_batch();
  void log_pause(int error);

  asio::posix::stream_descriptor descriptor_;
  Connections& connections_;
  Take take_;
  LogSink* log_;
  Event changed_;
  bool is_closed_ = false;
  bool is_pausing_ = false;  ///< the log knows
};

}  // namespace fovea::serve
