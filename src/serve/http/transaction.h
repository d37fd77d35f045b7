#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "serve/api_error.h"
#include "serve/http/head_parser.h"
#include "serve/http/server.h"

namespace fovea::serve {

/// Thrown where the connection waits for bytes of a client that will not come.
struct ClientLeft : std::exception {};

/// A body, and the room that it takes.
struct HeldBody {
  std::shared_ptr<void> room;  // is given back after the bytes
  BodyBytes bytes;
};

/// How much of a request has been read.
enum class Received : std::uint8_t {
  kNothing,  ///< not even a whole head
  kHead,     ///< a body is still to come
  kAll,
};

/// The facts about a request that are known when it is over, for logs and metrics.
struct Outcome {
  int status = 0;  ///< of the reply
  std::string error_code;
  std::string error_detail;
  std::uint64_t bytes_in = 0;  ///< of the body
  std::uint64_t bytes_out = 0;
};

/// One request and its reply on a connection, from the first byte to the last. For one thread.
struct Transaction {
  RequestHead head;
  Framing framing;
  Received received = Received::kNothing;
  const Route* route = nullptr;
  PathArguments arguments;
  Permit permit;
  std::shared_ptr<HeldBody> body;  ///< null before it is admitted, and once a handler has it
  std::optional<Reply> reply;      ///< from when it is known until it has been sent
  bool client_left = false;
  bool has_broken_off = false;  ///< the reply, of which the client has a part
  bool may_leave = false;       ///< the client has what it asked for, and ends the reply by leaving
  Outcome outcome;

  /// Whether there is something to do before a reply is sent.
  [[nodiscard]] bool is_open() const noexcept { return !reply && !client_left; }
  void answer(Reply with) {
    outcome.status = with.status;
    outcome.error_code = std::move(with.error_code);
    outcome.error_detail = std::move(with.error_detail);
    reply = std::move(with);
  }
  /// Answers with an error of the transport's own.
  void fail(const ApiError& error) { answer(error_reply(error, head)); }
};

}  // namespace fovea::serve
