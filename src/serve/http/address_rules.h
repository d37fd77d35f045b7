#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace fovea::serve {

/// An IP address.
struct Address {
  bool is_v6 = false;
  std::array<std::uint8_t, 16> bytes{};  ///< in network order; the first four of IPv4

  /// The form that URLs have, without brackets.
  [[nodiscard]] std::string text() const;

  friend bool operator==(const Address&, const Address&) = default;
};

/// The address in its text. Nothing for names.
[[nodiscard]] std::optional<Address> parse_address(const std::string& text);
/// The address of a socket. Nothing for other families than IP.
[[nodiscard]] std::optional<Address> address_of(const sockaddr& socket);

/// Whether an address belongs to the public internet: none that is loopback, private, shared,
/// link-local, unique-local, multicast, reserved, unspecified, for documentation or benchmarks, and
/// no IPv6 form that leads to an IPv4 address (mapped, 6to4, NAT64, Teredo).
/// Source: RFC 6890 and the IANA registries of special-purpose addresses that it starts.
[[nodiscard]] bool is_public(const Address& address);

/// Whether `domain` may stand in a list of domains: a host, or "*." and a name; lower case.
[[nodiscard]] bool is_domain(const std::string& domain);
/// Whether a list has the host itself, or "*." and a name that it ends with. "*.example.org" has
/// "a.example.org" and "a.b.example.org", but not "example.org".
[[nodiscard]] bool is_listed(const std::string& host, const std::vector<std::string>& domains);

}  // namespace fovea::serve
