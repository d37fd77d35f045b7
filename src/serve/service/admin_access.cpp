#include "serve/service/admin_access.h"

#include <algorithm>
#include <array>

#include "serve/http/address_rules.h"
#include "serve/text/url.h"

namespace fovea::serve {
namespace {

/// Whether a proxy says that it has passed the request on. Source: RFC 7239, RFC 9110
/// section 7.6.3, and what proxies send besides.
bool is_forwarded(const Headers& headers) {
  return std::ranges::any_of(headers, [](const Header& header) {
    const std::string name = to_lower(header.name);
    return name == "forwarded" || name == "via" || name == "x-real-ip" ||
           name.starts_with("x-forwarded-");
  });
}

/// The name or the address of a Host, without its port and brackets.
std::string_view without_port(std::string_view host) {
  if (host.starts_with('[')) return host.substr(1, host.find(']') - 1);
  return host.substr(0, host.find(':'));
}

}  // namespace

bool names_loopback(std::string_view host) {
  const std::string name = to_lower(without_port(host));
  if (name == "localhost") return true;
  constexpr std::uint8_t kLoopbackNet = 127;
  constexpr std::array<std::uint8_t, 16> kLoopbackV6{0, 0, 0, 0, 0, 0, 0, 0,
                                                     0, 0, 0, 0, 0, 0, 0, 1};
  const std::optional<Address> address = parse_address(name);
  if (!address) return false;
  return address->is_v6 ? address->bytes == kLoopbackV6 : address->bytes[0] == kLoopbackNet;
}

bool has_foreign_origin(const Headers& headers) {
  constexpr std::string_view kSchemeEnd = "://";
  const std::string* const host = find_header(headers, "Host");
  return std::ranges::any_of(headers, [&](const Header& header) {
    if (to_lower(header.name) != "origin") return false;
    const std::size_t scheme_end = header.value.find(kSchemeEnd);
    if (host == nullptr || scheme_end == std::string::npos) return true;  // "null", too
    return to_lower(header.value.substr(scheme_end + kSchemeEnd.size())) != to_lower(*host);
  });
}

OpenAdmin open_admin(const HttpOptions& http) {
  if (!http.unix_socket.empty()) return OpenAdmin::kOwnUser;
  const bool is_bare_v6 = http.host.find(':') != std::string::npos && !http.host.starts_with('[');
  const std::string host = is_bare_v6 ? "[" + http.host + "]" : http.host;
  return names_loopback(host) ? OpenAdmin::kLoopback : OpenAdmin::kNobody;
}

std::string objection_to(const RequestHead& head, OpenAdmin open) {
  if (is_forwarded(head.headers)) return "because a proxy has passed the request on";
  switch (open) {
    case OpenAdmin::kNobody: return "because others reach the address of this server";
    case OpenAdmin::kOwnUser:
      return head.is_own_user ? "" : "because the client is a process of another user";
    case OpenAdmin::kLoopback: {
      const std::string* const host = find_header(head.headers, "Host");
      const bool is_direct = host != nullptr && names_loopback(*host);
      return is_direct ? "" : "because its Host is no loopback address";
    }
  }
  return "because nobody may";
}

}  // namespace fovea::serve
