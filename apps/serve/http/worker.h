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
class Worker {
 public:
  /// All must outlive this.
  Worker(const HttpOptions& options, const Server::Parts& parts,
         std::atomic<std::int64_t>& requests_in_progress);
  ~Worker() { finish(); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  [[nodiscard]] asio::io_context& context() noexcept { return context_; }

  /// @throws Error(kIo) if there are no threads to be had.
  void start();
  /// Serves a connection; closes it where that is not possible. Also from its own thread.
  void adopt(Accepted accepted, std::shared_ptr<TlsContext> tls, std::shared_ptr<void> place);
  /// Session::drain() for all, also those to come.
  void drain();
  /// Session::abort() for all.
  void abort();
  /// Waits until there are no connections; the thread then ends.
  void finish() noexcept;

 private:
  void run() noexcept;
  void log_error(const std::exception& error) noexcept;

  SessionGroup group_;
  asio::io_context context_;
  asio::executor_work_guard<asio::io_context::executor_type> guard_;
  std::thread thread_;
};

}  // namespace fovea::serve
