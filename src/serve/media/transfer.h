#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "serve/http/address_rules.h"
#include "serve/http/message.h"
#include "serve/text/headers.h"
#include "serve/text/url.h"

namespace fovea::serve {

/// The proxy of a transfer. It is asked for a tunnel to the address that was checked, also for
/// http, or if it looks names up, for the URL.
struct ProxyHop {
  Url url;
  std::vector<Address> addresses;  ///< of its host: no other is connected to
  Headers headers;                 ///< for it alone
};

/// A URL to get, and the bounds of it.
struct Transfer {
  Url url;
  /// Of its host: no other is connected to. Through a proxy the first; none: the proxy looks it up.
  std::vector<Address> addresses;
  Headers headers;  ///< beside those of the transport
  std::optional<ProxyHop> proxy = {};
  std::size_t max_bytes = 0;
  std::chrono::milliseconds connect_timeout{0};
  Clock::time_point until;
  std::stop_token stop;
  /// Asked before the body grows beyond what it was granted: room for so many bytes more, or none.
  std::function<bool(std::size_t bytes)> grant = {};
};

/// The result of a transfer.
struct TransferReply {
  enum class Outcome : std::uint8_t {
    kReply,     ///< status, and either body or location
    kTooLarge,  ///< more than max_bytes
    kNoRoom,    ///< more than was granted
    kLate,      ///< no connection in connect_timeout, or not all in time
    kStopped,
    kFailed,  ///< no connection, no trust, no HTTP, or an end before all bytes
  };
  Outcome outcome = Outcome::kFailed;
  int status = 0;
  std::string location;            ///< header of that name, as it came
  std::vector<std::uint8_t> body;  ///< of status 200 only
};

/// GETs a URL once over HTTP/1.1, following no redirect. Host names are not looked up again: the
/// addresses are given, and the socket is made for one of these or not at all. No proxy of the
/// environment, no cookies or credentials but those of `headers`, no compression. Waits for the
/// end.
/// @throws std::bad_alloc.
[[nodiscard]] TransferReply get(const Transfer& transfer);

/// The URL that a header Location means. Nothing if parse_url() does not take it, and if it leads
/// from https to http. Source: RFC 9110, section 10.2.2.
[[nodiscard]] std::optional<Url> redirect_target(const Url& from, const std::string& location);

}  // namespace fovea::serve
