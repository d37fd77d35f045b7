#include "serve/text/url.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace fovea::serve {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_hex_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// What stands in a URL as it is: visible ASCII without the characters that parsers disagree on.
bool is_plain(char c) {
  return c > ' ' && c < 0x7f && std::string_view("\"<>\\^`{|}").find(c) == std::string_view::npos;
}

bool percents_are_complete(std::string_view text) {
  for (std::size_t at = text.find('%'); at != std::string_view::npos; at = text.find('%', at + 1)) {
    if (at + 2 >= text.size() || !is_hex_digit(text[at + 1]) || !is_hex_digit(text[at + 2])) {
      return false;
    }
  }
  return true;
}

/// Whether a label makes other parsers read the host as an IPv4 address.
bool is_number(std::string_view label) {
  if (std::ranges::all_of(label, is_digit)) return true;
  return label.starts_with("0x") && std::ranges::all_of(label.substr(2), is_hex_digit);
}

bool is_label(std::string_view label) {
  const auto fits = [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
  };
  constexpr std::size_t kMaxLabelBytes = 63;
  return !label.empty() && label.size() <= kMaxLabelBytes && std::ranges::all_of(label, fits) &&
         label.front() != '-' && label.back() != '-';
}

/// An address of this family in its shortest form.
std::optional<std::string> canonical(int family, const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> address{};
  std::array<char, INET6_ADDRSTRLEN> shortest{};
  if (inet_pton(family, text.c_str(), address.data()) != 1) return std::nullopt;
  if (inet_ntop(family, address.data(), shortest.data(), shortest.size()) == nullptr) {
    return std::nullopt;
  }
  return shortest.data();
}

bool set_host(Url& url, std::string_view text) {
  if (text.starts_with('[')) {
    if (!text.ends_with(']')) return false;
    const auto address = canonical(AF_INET6, std::string(text.substr(1, text.size() - 2)));
    url.kind = HostKind::kIpv6;
    url.host = address.value_or("");
    return address.has_value();
  }
  url.host = to_lower(text);
  if (canonical(AF_INET, url.host) == url.host) {
    url.kind = HostKind::kIpv4;
    return true;
  }
  return is_host_name(url.host);
}

bool set_port(Url& url, std::string_view text) {
  if (text.empty() || text.front() == '0') return false;
  const char* const end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, url.port);
  return error == std::errc() && stop == end;
}

/// Sets host and port from what stands between "//" and the path.
bool set_authority(Url& url, std::string_view text) {
  std::size_t colon = text.rfind(':');
  if (text.ends_with(']')) colon = std::string_view::npos;  // it is inside an IPv6 address
  if (colon == std::string_view::npos) return set_host(url, text);
  return set_host(url, text.substr(0, colon)) && set_port(url, text.substr(colon + 1));
}

}  // namespace

std::string to_lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  }
  return lower;
}

bool begins_with(std::string_view text, std::string_view prefix) {
  return to_lower(text.substr(0, prefix.size())) == prefix;
}

bool is_http_url(std::string_view text) {
  return begins_with(text, "http://") || begins_with(text, "https://");
}

bool is_host_name(std::string_view host) {
  constexpr std::size_t kMaxNameBytes = 253;
  if (host.size() > kMaxNameBytes) return false;
  while (true) {
    const std::size_t dot = host.find('.');
    if (!is_label(host.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return !is_number(host);
    host.remove_prefix(dot + 1);
  }
}

std::optional<Url> parse_url(std::string_view text) {
  if (text.size() > kMaxUrlBytes || !is_http_url(text)) return std::nullopt;
  if (!std::ranges::all_of(text, is_plain) || !percents_are_complete(text)) return std::nullopt;
  Url url;
  url.is_https = begins_with(text, "https");
  url.port = url.is_https ? 443 : 80;
  text = text.substr(0, text.find('#'));
  text.remove_prefix(text.find("//") + 2);
  const std::size_t end = std::min(text.find_first_of("/?"), text.size());
  url.target = text.substr(end);
  if (!url.target.starts_with('/')) url.target.insert(0, 1, '/');
  if (!set_authority(url, text.substr(0, end))) return std::nullopt;
  return url;
}

std::string Url::text() const {
  const std::string name = kind == HostKind::kIpv6 ? "[" + host + "]" : host;
  return (is_https ? "https://" : "http://") + name + ":" + std::to_string(port) + target;
}

}  // namespace fovea::serve
