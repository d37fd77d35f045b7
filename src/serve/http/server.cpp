#include "serve/http/server.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "fovea/error.h"
#include "serve/http/connections.h"
#include "serve/http/listener.h"
#include "serve/http/tls.h"
#include "serve/http/worker.h"

namespace fovea::serve {
namespace {

HttpOptions checked(HttpOptions options) {
  if (options.tls && !options.unix_socket.empty()) {
    throw Error(ErrorCode::kInvalidArgument, "a unix socket is not encrypted");
  }
  while (options.root_path.ends_with('/')) options.root_path.pop_back();
  if (!options.root_path.empty() && !options.root_path.starts_with('/')) {
    throw Error(ErrorCode::kInvalidArgument,
                "the root path " + options.root_path + " does not begin with '/'");
  }
  options.io_threads = std::max(options.io_threads, 1);
  return options;
}

}  // namespace

struct Server::Impl {
  Impl(HttpOptions wanted, Parts given);

  [[nodiscard]] std::shared_ptr<TlsContext> tls_now() const;
  /// Spreads connections over the threads. On the thread of the listener.
  void take(Accepted accepted, std::shared_ptr<ConnectionPlace> place);
  /// Ends the connection that has been idle longest, or another that can be spared.
  void make_room();
  void drain();
  void stop(std::chrono::milliseconds patience);

  const HttpOptions options;
  const Parts parts;
  std::atomic<std::int64_t> requests_in_progress = 0;
  Connections connections;
  mutable std::mutex tls_mutex;
  std::shared_ptr<TlsContext> tls;
  SocketPath socket_path;
  std::uint16_t port = 0;
  std::vector<std::unique_ptr<Worker>> workers;
  std::unique_ptr<Listener> listener;  ///< on the thread of the first worker
  std::size_t next_worker = 0;
};

Server::Impl::Impl(HttpOptions wanted, Parts given)
    : options(checked(std::move(wanted))),
      parts(std::move(given)),
      connections(options.max_connections) {
  if (options.tls) tls = make_tls_context(*options.tls, parts.tls.value());
  const bool is_unix = !options.unix_socket.empty();
  ListeningSocket listening =
      is_unix ? listen_unix(options.unix_socket) : listen_tcp(options.host, options.port);
  if (is_unix) socket_path = SocketPath(options.unix_socket);
  port = listening.port;
  for (int i = 0; i < options.io_threads; ++i) {
    workers.push_back(std::make_unique<Worker>(options, parts, requests_in_progress));
  }
  listener = std::make_unique<Listener>(
      workers.front()->context(), std::move(listening.descriptor), connections,
      [this](Accepted accepted, std::shared_ptr<ConnectionPlace> place) {
        take(std::move(accepted), std::move(place));
      },
      [this] { make_room(); }, options.log);
  connections.on_room([this] { listener->notify_room(); });
}

std::shared_ptr<TlsContext> Server::Impl::tls_now() const {
  const std::lock_guard lock(tls_mutex);
  return tls;
}

void Server::Impl::take(Accepted accepted, std::shared_ptr<ConnectionPlace> place) {
  Worker& worker = *workers[next_worker++ % workers.size()];
  worker.adopt(std::move(accepted), tls_now(), std::move(place));
}

void Server::Impl::make_room() {
  const auto since = [](const auto& worker) { return worker->idle_since(); };
  const auto& longest = *std::ranges::min_element(workers, {}, since);
  const bool is_one_idle = longest->idle_since() != std::numeric_limits<Clock::rep>::max();
  (is_one_idle ? *longest : *workers[next_worker++ % workers.size()]).make_room();
}

void Server::Impl::drain() {
  asio::post(workers.front()->context(), [this] { listener->close(); });
  for (const auto& worker : workers) worker->drain();
}

void Server::Impl::stop(std::chrono::milliseconds patience) {
  drain();
  (void)connections.wait_none(patience);
  for (const auto& worker : workers) worker->abort();
  for (const auto& worker : workers) worker->finish();
  socket_path = SocketPath();
}

Server::Server(HttpOptions options, Parts parts)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(parts))) {}

Server::~Server() { stop(std::chrono::milliseconds(0)); }

void Server::start() {
  impl_->listener->start();
  for (const auto& worker : impl_->workers) worker->start();
}

std::uint16_t Server::port() const noexcept { return impl_->port; }

std::string Server::address() const {
  const HttpOptions& options = impl_->options;
  if (!options.unix_socket.empty()) return "unix:" + options.unix_socket;
  const bool needs_brackets =
      options.host.find(':') != std::string::npos && !options.host.starts_with('[');
  return (options.tls ? "https://" : "http://") +
         (needs_brackets ? "[" + options.host + "]" : options.host) + ":" +
         std::to_string(impl_->port);
}

void Server::drain() { impl_->drain(); }

bool Server::is_idle() const noexcept { return impl_->connections.open() == 0; }

void Server::stop(std::chrono::milliseconds patience) noexcept { impl_->stop(patience); }

void Server::use_tls(const TlsTexts& fresh) {
  if (!impl_->options.tls) return;
  std::shared_ptr<TlsContext> context = make_tls_context(*impl_->options.tls, fresh);
  const std::lock_guard lock(impl_->tls_mutex);
  impl_->tls = std::move(context);
}

HttpStats Server::stats() const noexcept {
  return {.connections = impl_->connections.open(),
          .requests_in_progress = impl_->requests_in_progress,
          .accepted = impl_->connections.accepted()};
}

}  // namespace fovea::serve
