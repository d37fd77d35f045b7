#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "fovea/log.h"
#include "serve/http/cors.h"
#include "serve/http/router.h"
#include "serve/http/tls.h"

namespace fovea::serve {

/// Where a server listens, and how long and how much clients may.
struct HttpOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8000;    ///< 0: any that is free
  std::string unix_socket;      ///< path; instead of host and port
  std::optional<TlsFiles> tls;  ///< not with a unix socket
  int io_threads = 2;           ///< that move bytes
  int max_connections = 8192;   ///< beyond them the longest idle one goes
  std::size_t max_header_bytes = std::size_t{64} << 10;
  int max_headers = 100;
  std::size_t max_body_bytes = std::size_t{768} << 20;
  std::chrono::milliseconds header_timeout{10'000};      ///< from the first byte to the last
  std::chrono::milliseconds keep_alive_timeout{75'000};  ///< between two requests
  std::chrono::milliseconds body_idle_timeout{30'000};   ///< between two pieces of a body
  std::chrono::milliseconds reply_idle_timeout{60'000};
  /// Bytes per second over any rate_window once rate_grace has passed; 0: any rate.
  std::int64_t min_body_rate = 16 << 10;
  std::int64_t min_reply_rate = 16 << 10;
  std::chrono::milliseconds rate_grace{10'000};
  std::chrono::milliseconds rate_window{30'000};
  std::chrono::milliseconds request_timeout{120'000};  ///< for a reply, from the first byte
  /// After a deadline, for its handler to notice; then the transport answers 504.
  std::chrono::milliseconds reply_grace{10'000};
  std::string root_path;    ///< in front of all paths, or empty
  std::string server_name;  ///< for the header Server
  Cors cors;                ///< pages of other origins
  LogSink* log = nullptr;   ///< must outlive the server
};

/// The means of a request that may go on: room for its body as that comes, then a place. Both
/// functions may be empty, must not wait, and refuse by throwing an ApiError.
struct Permit {
  /// Asked before more of a body is read or kept: room for so many bytes of it in all.
  std::function<void(std::uint64_t bytes)> grow;
  /// That room; held until the last of those who read the body lets it go.
  std::shared_ptr<void> room;
  /// Asked once, when all of the body is there. What it returns is held until the reply has been
  /// sent or the connection is gone.
  std::function<std::shared_ptr<void>()> enter;
  std::shared_ptr<void> place;  ///< likewise; from enter(), or from the beginning
};

/// Asked when a head is complete and before the body is read: refuse with a reply, or let it come.
/// Called on threads of the server; must not wait.
using Gate = std::function<std::variant<Reply, Permit>(const RequestHead&, const Route&)>;

/// The facts about a request that is over, for logs and metrics.
struct Served {
  const RequestHead& head;
  const Route* route = nullptr;   ///< null: none fits
  int status = 0;                 ///< 499: the client left before the reply
  std::string_view error_code;    ///< of an error reply, or why a reply has not come whole
  std::string_view error_detail;  ///< why the server has failed, for its log; may name paths
  std::uint64_t bytes_in = 0;     ///< of the body
  std::uint64_t bytes_out = 0;
  std::chrono::duration<double> duration{};  ///< from the first byte in to the last byte out
};

/// Told of every request that was answered, or whose client left. Must not wait or throw.
using Observer = std::function<void(const Served&)>;

/// Runs a task soon on a thread that may compute. Must not throw; tasks do not either.
using RunTask = std::function<void(std::function<void()>)>;

/// Counters of connections.
struct HttpStats {
  std::int64_t connections = 0;           ///< open now
  std::int64_t requests_in_progress = 0;  ///< read, worked on or being answered
  std::int64_t accepted = 0;              ///< connections since the start
};

/// HTTP/1.1 over TCP, TLS or a unix socket: keep-alive, chunked bodies, Expect: 100-continue,
/// deadlines that slow clients cannot stretch. Bodies of requests are refused, or read into memory
/// as a whole. A client that leaves, or shuts its sending side, is noticed while its request is
/// worked on (Exchange::gone).
/// Limits and what follows from them: docs/serving.md.
class Server {
 public:
  struct Parts {
    const Router* router = nullptr;  ///< must outlive the server, like what the functions refer to
    Gate gate;
    Observer observer;
    RunTask run_task;  ///< for handlers
    /// Begins the trace of a request that a route takes. Must not wait. Empty: none is traced.
    std::function<std::shared_ptr<RequestTrace>(const RequestHead&, const Route&)> begin_trace = {};
    std::optional<TlsTexts> tls =
        {};  ///< what the files of HttpOptions::tls hold; needed with them
  };

  /// Binds and listens; connections are accepted from start() on.
  /// @throws Error(kIo) with the system's reason (address in use, no permission, no such host),
  /// Error(kInvalidArgument) for certificates and keys that cannot be used.
  Server(HttpOptions options, Parts parts);
  /// As stop(0).
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  void start();
  /// The port it listens on, 0 for a unix socket.
  [[nodiscard]] std::uint16_t port() const noexcept;
  /// "http://127.0.0.1:8000", "unix:/run/fovea.sock".
  [[nodiscard]] std::string address() const;

  /// Accepts no more connections and closes those without a request; requests that are on their way
  /// get their replies, with "Connection: close". Returns at once.
  void drain() noexcept;
  /// Whether all connections are closed.
  [[nodiscard]] bool is_idle() const noexcept;
  /// drain(), waits until is_idle() or the time is over, closes what is left, ends the threads. The
  /// path of a unix socket is gone.
  void stop(std::chrono::milliseconds timeout) noexcept;

  /// Takes what its files hold now, for connections to come; nothing without HttpOptions::tls.
  /// @throws Error(kInvalidArgument), and goes on with what it has.
  void use_tls(const TlsTexts& fresh);

  [[nodiscard]] HttpStats stats() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fovea::serve
