#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "serve/http/message.h"

namespace fovea::serve {

/// A request to another server, over HTTP/1.1.
struct ClientRequest {
  std::string method;  ///< "GET" or "POST"
  std::string url;
  /// IP address to connect to in place of the host in the URL, whose name stays in Host and is the
  /// one that a certificate is for; empty: the host.
  std::string address = {};
  Headers headers;             ///< all but Host and Content-Length
  std::vector<BodyPart> body;  ///< let go once it has been sent and the head of the answer is there
  std::chrono::milliseconds connect_timeout{2'000};
  Clock::time_point head_until;                    ///< for the head of the answer
  std::chrono::milliseconds idle_timeout{60'000};  ///< then between two pieces of its body
};

/// The head of an answer, as it came.
struct ClientHead {
  int status = 0;
  Headers headers;
};

/// How a request to another server has ended.
enum class ClientEnd : std::uint8_t {
  kComplete,
  kNoConnection,  ///< there was none, in time or at all, or no trust in its certificate
  kNoAnswer,  ///< the connection ended before the head of an answer was there, or it was no HTTP
  kBroken,    ///< it ended within the body
  kLate,      ///< head_until or idle_timeout has passed
  kUnwanted,  ///< on_head or on_data have ended it
  kStopped,   ///< stop(), or the client has ended
};

/// What is told of a request, on the thread of the client, in this order. They must not wait.
struct ClientEvents {
  /// @return whether the body is wanted. What it throws ends the request as kUnwanted.
  std::function<bool(ClientHead head)> on_head;
  /// @return false if there is no room for these bytes now: they come again after resume(), and may
  /// come before. What it throws ends the request as kUnwanted.
  std::function<bool(std::string_view bytes)> on_data;
  /// Once, and the last. Must not throw.
  std::function<void(ClientEnd end)> on_end;
};

/// Sends requests to other servers and streams their answers, all of them on one thread, which
/// waits for none of them. A POST has a connection of its own, so that it is sent once; those of
/// others are used again. No proxy, redirects, cookies of its
/// own or content decoding. All functions may be called from any thread, and from events.
class HttpClient {
 public:
  /// A request; 0 is none.
  using Id = std::uint64_t;

  /// @param ca_certs certificates in PEM that sign those of servers, in place of the system's;
  /// empty: the system's. @throws Error(kIo) if there is no thread to be had.
  explicit HttpClient(std::string ca_certs = {});
  /// Ends all requests with kStopped.
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// The number of a request that is to be started.
  [[nodiscard]] Id make_id() noexcept;
  /// Sends a request soon. @param id of make_id(), used once. @throws std::bad_alloc, and then it
  /// has not begun.
  void start(Id id, ClientRequest request, ClientEvents events);
  /// There is room again for what on_data did not take.
  void resume(Id id) noexcept;
  /// Ends it with kStopped; nothing for one that has ended. Where there is no memory to say so, the
  /// request is asked by on_data whether it still wants what comes.
  void stop(Id id) noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fovea::serve
