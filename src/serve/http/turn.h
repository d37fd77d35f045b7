#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/api_error.h"
#include "serve/http/head_parser.h"
#include "serve/http/server.h"

namespace fovea::serve {

/// Thrown where bytes of a client are waited for that will not come.
struct ClientLeft : std::exception {};

/// A body, and the room that it takes.
struct HeldBody {
  std::shared_ptr<void> room;  // goes after the bytes
  std::vector<std::uint8_t> bytes;
};

/// One request on its connection, from its first byte to the last of its reply.
struct Turn {
  RequestHead head;
  Framing framing;
  bool has_head = false;  ///< `head` and `framing` are complete
  const Route* route = nullptr;
  PathArguments arguments;
  Permit permit;
  std::shared_ptr<HeldBody> body;
  bool has_body = false;  ///< all of its bytes have been read
  bool keep_alive = false;
  bool has_left = false;  ///< the client
  std::optional<Reply> reply;
  int status = 0;  ///< of the reply
  std::string error_code;
  std::string error_detail;  ///< of the reply
  std::uint64_t bytes_in = 0;
  std::uint64_t bytes_out = 0;

  /// Whether there is something to do before a reply.
  [[nodiscard]] bool is_open() const noexcept { return !reply && !has_left; }
  void answer(Reply with) {
    status = with.status;
    error_detail = std::move(with.error_detail);
    reply = std::move(with);
  }
  /// Answers with an error of the transport's own.
  void fail(const ApiError& error);
};

}  // namespace fovea::serve
