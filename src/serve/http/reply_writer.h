#pragma once

#include <chrono>
#include <ctime>
#include <string>
#include <string_view>

#include "serve/http/message.h"
#include "serve/http/rate_floor.h"
#include "serve/http/stream.h"
#include "serve/http/transaction.h"

namespace fovea::serve {

/// The values that a reply needs beside itself to become bytes.
struct ReplyFrame {
  std::string_view server;  ///< for the header Server; empty: none
  std::string_view request_id;
  std::time_t now = 0;
  bool keep_alive = false;
  bool takes_chunks = true;  ///< the client speaks HTTP/1.1
};

/// "Sun, 06 Nov 1994 08:49:37 GMT". Source: RFC 9110, 5.6.7.
[[nodiscard]] std::string http_date(std::time_t time);

/// Whether the body of a reply is sent in chunks: it is still to come, and its length not known.
[[nodiscard]] bool is_sent_in_chunks(const Reply& reply, const ReplyFrame& frame);

/// Status line and headers, to the empty line. Control characters in values become spaces, so that
/// nothing that came from a client ends a header.
[[nodiscard]] std::string reply_head(const Reply& reply, const ReplyFrame& frame);

/// Whether replies with this status have a body, and so a length. Source: RFC 9110, 6.4.1.
[[nodiscard]] bool has_body(int status);

/// How slowly a client may take a reply.
struct ReplyPace {
  std::chrono::milliseconds idle_timeout{0};
  RateFloor floor;
};

/// Sends `head` and then the body of the reply of `now`, if it is to have one. Copies nothing, and
/// lets go of each part once it has been sent. Counts the bytes of the body in its outcome. Stream
/// and transaction must outlive the coroutine.
/// @throws ApiError(408, "slow_reader") if the client takes the reply too slowly, ClientLeft.
[[nodiscard]] Awaitable<void> write_reply(Stream& stream, ReplyPace pace, std::string head,
                                          Transaction& now);

/// Sends bytes of a body that comes piece by piece. Stream must outlive the coroutine.
/// @param timeout for all of them.
/// @throws ApiError(408, "slow_reader") if the client takes them too slowly, ClientLeft.
[[nodiscard]] Awaitable<void> write_piece(Stream& stream, std::chrono::milliseconds timeout,
                                          std::string piece);

/// A chunk with these bytes; the last one of a body for none. Source: RFC 9112, 7.1.
[[nodiscard]] std::string chunk_of(std::string_view bytes);

}  // namespace fovea::serve
