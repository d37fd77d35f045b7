#pragma once

#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <memory>
#include <thread>

#include "serve/http/listening_socket.h"
#include "serve/http/session.h"

namespace fovea::serve {

/// A thread and the connections that it moves bytes of. All functions may be called from any thread
/// but its own.
class IoThread {
 public:
  /// All must outlive this.
  IoThread(const HttpOptions& options, const Server::Parts& parts,
           std::atomic<std::int64_t>& requests_in_progress);
  ~IoThread() { finish(); }
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  [[nodiscard]] asio::io_context& context() noexcept { return context_; }

  /// @throws Error(kIo) if there are no threads to be had.
  void start();
  /// Serves a connection; closes it where that is not possible. Also from its own thread.
  void adopt(Accepted accepted, std::shared_ptr<TlsContext> tls,
             std::shared_ptr<ConnectionPlace> place);
  /// Since when a connection has been idle, the longest of all, in ticks of the clock; max: none.
  [[nodiscard]] Clock::rep idle_since() const noexcept {
    return group_.idle_since.load(std::memory_order_relaxed);
  }
  /// Ends a connection for one that waits: the longest idle one, of a client that has more than
  /// half of all places where there is such a one among the first; if none is idle, one of such a
  /// client that sends a request or takes a reply. Also from its own thread.
  void make_room();
  /// Session::drain() for all, also those to come.
  void drain() noexcept;
  /// Session::abort() for all.
  void abort() noexcept;
  /// Waits until there are no connections; the thread then ends.
  void finish() noexcept;

 private:
  void run() noexcept;
  void log_error(const std::exception& error) noexcept;
  [[nodiscard]] Session* dispensable();

  SessionGroup group_;
  asio::io_context context_;
  asio::executor_work_guard<asio::io_context::executor_type> guard_;
  std::thread thread_;
};

}  // namespace fovea::serve
