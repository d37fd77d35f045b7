#pragma once

#include <array>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <cstddef>
#include <functional>
#include <memory>

#include "fovea/log.h"
#include "serve/http/connections.h"
#include "serve/http/deadline.h"
#include "serve/http/listening_socket.h"

namespace fovea::serve {

/// Accepts connections, many at a time, while there are fewer than the limit. At the limit one that
/// waits asks for the place of another. Lives on one thread of an io_context, apart from
/// notify_room().
class Listener {
 public:
  /// Connections that are accepted at once; then other tasks of the event loop run, probes too,
  /// however many connections wait.
  static constexpr int kBatch = 16;

  using Take = std::function<void(Accepted, std::shared_ptr<ConnectionPlace>)>;

  /// @param take gets each connection. @param make_room asked to end one that can be spared, while
  /// there is no room for one that waits; does so soon or not at all. @param log may be null. All
  /// must outlive this.
  Listener(asio::io_context& context, FileDescriptor descriptor, Connections& connections,
           Take take, std::function<void()> make_room, LogSink* log);

  /// Before the thread runs, or on it.
  void start();
  /// Frees the address; connections in the backlog are refused.
  void close();
  /// From any thread: there are fewer connections than the limit.
  void notify_room() noexcept;

 private:
  [[nodiscard]] Awaitable<void> run();
  /// Waits until a connection waits. @return whether the listener goes on.
  [[nodiscard]] Awaitable<bool> wait_for_one();
  /// Makes room, or accepts what there is. @return for how long to wait before the next time.
  [[nodiscard]] std::chrono::milliseconds attend() noexcept;
  /// @return 0, or the errno that asks for a pause.
  [[nodiscard]] int accept_batch();
  void log_pause(int error);

  /// Memory to wait for a better moment with, when there is none left.
  using Reserve = std::array<std::byte, std::size_t{16} << 10>;

  asio::posix::stream_descriptor descriptor_;
  Connections& connections_;
  Take take_;
  std::function<void()> make_room_;
  LogSink* log_;
  Event changed_;
  std::unique_ptr<Reserve> reserve_;
  bool is_closed_ = false;
  bool is_pausing_ = false;  ///< the log knows
};

}  // namespace fovea::serve
