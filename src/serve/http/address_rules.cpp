#include "serve/http/address_rules.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>

#include "serve/text/url.h"

namespace fovea::serve {
namespace {

/// The addresses whose first `bits` bits are those of `bytes`.
struct Block {
  std::array<std::uint8_t, 4> bytes;
  int bits;
};

constexpr Block kNotPublicIpv4[] = {
    {{0, 0, 0, 0}, 8},        // this network
    {{10, 0, 0, 0}, 8},       // private
    {{100, 64, 0, 0}, 10},    // shared by customers of a provider
    {{127, 0, 0, 0}, 8},      // loopback
    {{169, 254, 0, 0}, 16},   // link-local, and metadata of clouds
    {{172, 16, 0, 0}, 12},    // private
    {{192, 0, 0, 0}, 24},     // protocols
    {{192, 0, 2, 0}, 24},     // documentation
    {{192, 88, 99, 0}, 24},   // relays of 6to4
    {{192, 168, 0, 0}, 16},   // private
    {{198, 18, 0, 0}, 15},    // benchmarks
    {{198, 51, 100, 0}, 24},  // documentation
    {{203, 0, 113, 0}, 24},   // documentation
    {{224, 0, 0, 0}, 4},      // multicast
    {{240, 0, 0, 0}, 4},      // reserved, broadcast
};

constexpr Block kPublicIpv6 = {{0x20, 0, 0, 0}, 3};  // all addresses that are in use
constexpr Block kNotPublicIpv6[] = {
    {{0x20, 0x01, 0, 0}, 23},        // protocols: Teredo, ORCHID, benchmarks
    {{0x20, 0x01, 0x0d, 0xb8}, 32},  // documentation
    {{0x20, 0x02, 0, 0}, 16},        // 6to4
    {{0x3f, 0xff, 0, 0}, 20},        // documentation
};

bool is_in(const Address& address, const Block& block) {
  for (int bit = 0; bit < block.bits; ++bit) {
    const auto byte = static_cast<std::size_t>(bit / 8);
    const int mask = 0x80 >> bit % 8;
    if (((address.bytes[byte] ^ block.bytes[byte]) & mask) != 0) return false;
  }
  return true;
}

template <class Blocks>
bool is_in_any(const Address& address, const Blocks& blocks) {
  return std::ranges::any_of(blocks, [&](const Block& block) { return is_in(address, block); });
}

}  // namespace

std::string Address::text() const {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool made = inet_ntop(is_v6 ? AF_INET6 : AF_INET, bytes.data(), text.data(),
                              static_cast<socklen_t>(text.size())) != nullptr;
  return made ? text.data() : "";
}

std::optional<Address> parse_address(const std::string& text) {
  Address address;
  address.is_v6 = text.find(':') != std::string::npos;
  const int family = address.is_v6 ? AF_INET6 : AF_INET;
  if (inet_pton(family, text.c_str(), address.bytes.data()) != 1) return std::nullopt;
  return address;
}

std::optional<Address> address_of(const sockaddr& socket) {
  Address address;
  if (socket.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(socket);
    std::memcpy(address.bytes.data(), &v4.sin_addr, sizeof(v4.sin_addr));
    return address;
  }
  if (socket.sa_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(socket);
    address.is_v6 = true;
    std::memcpy(address.bytes.data(), &v6.sin6_addr, sizeof(v6.sin6_addr));
    return address;
  }
  return std::nullopt;
}

bool is_public(const Address& address) {
  if (!address.is_v6) return !is_in_any(address, kNotPublicIpv4);
  return is_in(address, kPublicIpv6) && !is_in_any(address, kNotPublicIpv6);
}

bool is_domain(const std::string& domain) {
  if (parse_address(domain)) return true;
  return is_host_name(domain.starts_with("*.") ? domain.substr(2) : domain);
}

bool is_listed(const std::string& host, const std::vector<std::string>& domains) {
  return std::ranges::any_of(domains, [&](const std::string& domain) {
    return domain.starts_with("*.") ? host.ends_with(domain.substr(1)) : host == domain;
  });
}

}  // namespace fovea::serve
