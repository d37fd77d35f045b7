#pragma once

#include <ctime>
#include <string>
#include <string_view>

#include "serve/http/message.h"

namespace fovea::serve {

/// What a reply needs beside itself to become bytes.
struct ReplyFrame {
  std::string_view server;  ///< for the header Server; empty: none
  std::string_view request_id;
  std::time_t now = 0;
  bool keep_alive = false;
};

/// "Sun, 06 Nov 1994 08:49:37 GMT". Source: RFC 9110, 5.6.7.
[[nodiscard]] std::string http_date(std::time_t time);

/// Status line and headers, to the empty line. Control characters in values become spaces, so that
/// nothing that came from a client ends a header.
[[nodiscard]] std::string reply_head(const Reply& reply, const ReplyFrame& frame);

/// Whether replies with this status have a body, and so a length. Source: RFC 9110, 6.4.1.
[[nodiscard]] bool has_body(int status);

}  // namespace fovea::serve
