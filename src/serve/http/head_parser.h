#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "serve/http/message.h"

namespace fovea::serve {

/// How a request is delimited, and what its connection is to do.
struct Framing {
  bool is_chunked = false;
  std::uint64_t content_length = 0;  ///< of bodies that are not chunked
  bool keep_alive = false;
  bool expects_continue = false;
  bool is_http_1_0 = false;

  [[nodiscard]] bool has_body() const noexcept { return is_chunked || content_length > 0; }
};

/// Looks for the end of a head while its bytes come in.
class HeadScanner {
 public:
  /// Bytes up to and with the empty line, once it is there. @param input what has come so far; only
  /// ever grows. @throws ApiError(400, "invalid_request") at a byte that no head may hold: control
  /// characters, line breaks that are not CR LF.
  [[nodiscard]] std::optional<std::size_t> scan(std::string_view input);

 private:
  std::size_t scanned_ = 0;
};

/// Line breaks in front of a request, which clients may send. Source: RFC 9112, 2.2.
[[nodiscard]] std::size_t leading_breaks(std::string_view input);

/// Reads a head into `head`, whose id, arrival and deadline are set; what has been read before an
/// error stays there, so that the reply carries the client's id. Stricter than it need be: what
/// servers and proxies may understand in two ways is refused, never repaired. So are folded lines,
/// lengths that differ, and lengths beside a transfer coding. A target that is a URL
/// ("http://host/path") is taken for its path, and its host for that of the header.
/// @param text to the empty line, as HeadScanner has found it.
/// @throws ApiError: 400 "invalid_request" and "invalid_value", 417 "expectation_failed",
/// 431 "headers_too_large", 501 "transfer_coding_not_supported", 505 "http_version_not_supported".
/// Source: RFC 9112, 3, 5 and 6.
[[nodiscard]] Framing parse_head(std::string_view text, int max_headers, RequestHead& head);

/// The two halves of what stands behind the method.
struct Target {
  std::string path;   ///< percent-decoded, once
  std::string query;  ///< as it came, without '?'
};

/// @param target in origin form ("/path?query").
/// @throws ApiError(400, "invalid_request") for other forms, escapes that are none, characters that
/// have no place there, and paths with control characters. Source: RFC 9112, 3.2.1.
[[nodiscard]] Target split_target(std::string_view target);

}  // namespace fovea::serve
