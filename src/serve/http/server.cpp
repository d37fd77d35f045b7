#include "serve/http/server.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "fovea/error.h"
#include "serve/http/connections.h"
#include "serve/http/io_thread.h"
#include "serve/http/listener.h"
#include "serve/http/tls.h"

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
  void drain() noexcept;
  void stop(std::chrono::milliseconds timeout) noexcept;

  const HttpOptions options;
  const Parts parts;
  std::atomic<std::int64_t> requests_in_progress = 0;
  Connections connections;
  mutable std::mutex tls_mutex;
  std::shared_ptr<TlsContext> tls;
  SocketPath socket_path;
  std::uint16_t port = 0;
  std::vector<std::unique_ptr<IoThread>> threads;
  std::unique_ptr<Listener> listener;  ///< on the thread of the first thread
  std::size_t next_thread = 0;
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
    threads.push_back(std::make_unique<IoThread>(options, parts, requests_in_progress));
  }
  listener = std::make_unique<Listener>(
      threads.front()->context(), std::move(listening.descriptor), connections,
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
  IoThread& thread = *threads[next_thread++ % threads.size()];
  thread.adopt(std::move(accepted), tls_now(), std::move(place));
}

void Server::Impl::make_room() {
  const auto since = [](const auto& thread) { return thread->idle_since(); };
  const auto& longest = *std::ranges::min_element(threads, {}, since);
  const bool is_one_idle = longest->idle_since() != std::numeric_limits<Clock::rep>::max();
  (is_one_idle ? *longest : *threads[next_thread++ % threads.size()]).make_room();
}

void Server::Impl::drain() noexcept {
  post_surely(threads.front()->context(), [this] { listener->close(); });
  for (const auto& thread : threads) thread->drain();
}

void Server::Impl::stop(std::chrono::milliseconds timeout) noexcept {
  drain();
  (void)connections.wait_none(timeout);
  for (const auto& thread : threads) thread->abort();
  for (const auto& thread : threads) thread->finish();
  socket_path = SocketPath();
}

Server::Server(HttpOptions options, Parts parts)
    : impl_(std::make_unique<Impl>(std::move(options), std::move(parts))) {}

Server::~Server() { stop(std::chrono::milliseconds(0)); }

void Server::start() {
  impl_->listener->start();
  for (const auto& thread : impl_->threads) thread->start();
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

void Server::drain() noexcept { impl_->drain(); }

bool Server::is_idle() const noexcept { return impl_->connections.open() == 0; }

void Server::stop(std::chrono::milliseconds timeout) noexcept { impl_->stop(timeout); }

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
