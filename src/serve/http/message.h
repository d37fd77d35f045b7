#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_writer.h"
#include "serve/api_error.h"
#include "serve/http/body_bytes.h"
#include "serve/text/headers.h"

namespace fovea::serve {

using Clock = std::chrono::steady_clock;

struct Client;
class ReplyStream;
class RequestTrace;

/// The part of a request before its body.
struct RequestHead {
  std::string method;
  std::string path;   ///< percent-decoded, without --root-path
  std::string query;  ///< as it came, without '?'
  Headers headers;
  std::string id;                  ///< X-Request-Id of the client, or one of ours; visible ASCII
  std::string peer;                ///< address of the client, for logs
  std::shared_ptr<Client> client;  ///< whose share of the server it uses; may be null
  bool is_own_user = false;        ///< it is a process of this user or of root, says a unix socket
  std::optional<std::uint64_t> content_length;  ///< absent for chunked bodies
  Clock::time_point arrival;                    ///< of the first byte
  std::shared_ptr<RequestTrace> trace;          ///< of tracing/tracer.h; null: it is not traced
  Clock::time_point deadline;  ///< for the reply: of the server, or the client's if that is earlier
};

/// Bytes of a body. Items refer to them, so that nothing is copied.
using SharedBytes = std::shared_ptr<const BodyBytes>;

struct Request : RequestHead {
  SharedBytes body;  ///< never null

  [[nodiscard]] std::string_view text() const {
    return {reinterpret_cast<const char*>(body->data()), body->size()};
  }
};

/// Bytes of a reply, and what keeps them where they are until they have been sent.
struct BodyPart {
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;
};

/// A part that owns its text.
[[nodiscard]] BodyPart body_part(std::string text);
/// A part that owns its bytes.
[[nodiscard]] BodyPart body_part(std::vector<std::byte> bytes);

/// The status of a reply without the body that the client has.
inline constexpr int kNotModified = 304;

struct Reply {
  int status = 200;
  std::string content_type;
  Headers headers;  ///< beside those that the transport adds: length, connection, date, id
  std::vector<BodyPart> body;  ///< sent one after the other
  /// A body that is still to come, in place of `body`; its reading end. Null: there is none.
  std::shared_ptr<ReplyStream> stream = {};
  std::optional<std::uint64_t> stream_length = {};  ///< bytes of it, where they are known
  /// When the connection ends that body in order, whether or not it has ended. Before, the client
  /// ends it by leaving, once it has something of it, or by sending more.
  Clock::time_point stream_until = Clock::time_point::max();
  std::string error_code;    ///< of an error, for logs and metrics; not sent
  std::string error_detail;  ///< ApiError::detail, for the log; not sent

  [[nodiscard]] std::size_t size() const;
};

/// A reply with a body of text.
[[nodiscard]] Reply text_reply(int status, std::string content_type, std::string text);
/// A reply with a body of JSON.
[[nodiscard]] Reply json_reply(const JsonObject& json, int status = 200);

/// Whether a client's X-Request-Id is taken: 1 to 128 visible ASCII characters.
[[nodiscard]] bool is_request_id(std::string_view text);

/// Makes ids for requests without one: "fov-" and 32 hexadecimal digits. They are not secret. Not
/// thread-safe.
class RequestIds {
 public:
  RequestIds();
  [[nodiscard]] std::string next();

 private:
  std::mt19937_64 random_;
};

/// The `type` of errors with this status, for example "invalid_request_error".
[[nodiscard]] std::string_view error_type(int status);

/// The reply with this error: {"error": {message, type, param, code, request_id}}, for paths of
/// KServe v2 {"error": "code: message"}. What it quotes of a client is printable().
[[nodiscard]] Reply error_reply(const ApiError& error, const RequestHead& head);

}  // namespace fovea::serve
