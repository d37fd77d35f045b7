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

/// Whether a URL holds the character as it is: visible ASCII on which all parsers agree.
bool is_plain(char c) {
  return c > ' ' && c < 0x7f && std::string_view("\"<>\\^`{|}").find(c) == std::string_view::npos;
}

/// Whether parsers do not percent-encode the character: they drop control characters, and take a
/// backslash for a slash.
bool is_hostile(char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f || c == '\\'; }

/// Text with %20 and the like for all characters but those that `is_kept` names.
/// Source: RFC 3986, section 2.1.
template <class IsKept>
std::string encoded_but(std::string_view text, const IsKept& is_kept) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    if (is_kept(c)) {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += {'%', kDigits[byte >> 4U], kDigits[byte & 15U]};
  }
  return encoded;
}

struct UrlPieces {
  std::string_view authority;
  std::string_view target;  ///< path and query, without the fragment
};

/// @param text begins as an http or https URL does.
UrlPieces split(std::string_view text) {
  text = text.substr(0, text.find('#'));
  text.remove_prefix(text.find("//") + 2);
  const std::size_t end = std::min(text.find_first_of("/?"), text.size());
  return {.authority = text.substr(0, end), .target = text.substr(end)};
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
  if (!is_http_url(text) || target_problem(text)) return std::nullopt;
  const auto [authority, target] = split(text);
  if (!std::ranges::all_of(authority, is_plain)) return std::nullopt;
  Url url;
  url.is_https = begins_with(text, "https");
  url.port = url.is_https ? 443 : 80;
  url.target = encoded_but(target, is_plain);
  if (!url.target.starts_with('/')) url.target.insert(0, 1, '/');
  if (!set_authority(url, authority)) return std::nullopt;
  return url;
}

std::optional<std::string> target_problem(std::string_view text) {
  if (text.size() > kMaxUrlBytes) {
    return "expected a URL of at most " + std::to_string(kMaxUrlBytes) + " bytes, got " +
           std::to_string(text.size());
  }
  const std::string_view target = split(text).target;
  if (std::ranges::any_of(target, is_hostile)) {
    return "expected a URL without control characters and backslashes in its path";
  }
  if (!percents_are_complete(target)) {
    return "expected two hexadecimal digits behind each % of the URL";
  }
  return std::nullopt;
}

std::string Url::text() const {
  const std::string name = kind == HostKind::kIpv6 ? "[" + host + "]" : host;
  return (is_https ? "https://" : "http://") + name + ":" + std::to_string(port) + target;
}

std::optional<std::string> percent_decoded(std::string_view text) {
  std::string plain;
  while (!text.empty()) {
    if (text.front() != '%') {
      plain += text.front();
      text.remove_prefix(1);
      continue;
    }
    unsigned value = 0;
    const std::string_view digits = text.substr(1, 2);
    const char* end = digits.data() + digits.size();
    if (digits.size() < 2 || std::from_chars(digits.data(), end, value, 16).ptr != end) {
      return std::nullopt;
    }
    plain += static_cast<char>(value);
    text.remove_prefix(3);
  }
  return plain;
}

std::string percent_encoded(std::string_view text) {
  return encoded_but(text, [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           std::string_view("-._~").find(c) != std::string_view::npos;
  });
}

}  // namespace fovea::serve
