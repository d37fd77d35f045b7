#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace fovea::serve {

enum class HostKind : std::uint8_t { kName, kIpv4, kIpv6 };

/// Where an http or https URL leads. All text is visible ASCII.
struct Url {
  bool is_https = false;
  HostKind kind = HostKind::kName;
  std::string host;  ///< lower case; of IPv6 without brackets, in its shortest form
  std::uint16_t port = 80;
  std::string target;  ///< path and query: "/a.png?size=2"; never empty

  /// The URL as a parser of any other library reads it.
  [[nodiscard]] std::string text() const;

  friend bool operator==(const Url&, const Url&) = default;
};

/// Longest URL that is read.
inline constexpr std::size_t kMaxUrlBytes = 8192;

/// An absolute http or https URL; its fragment is dropped, and path and query are percent-encoded
/// as browsers do it. Nothing for text that other parsers read as another host, or that no server
/// needs: what target_problem() names, user information, blanks and non-ASCII characters in the
/// host, an empty host or port, a trailing dot, zones of IPv6 addresses, and IPv4 addresses in any
/// but the dotted decimal form (2130706433, 0x7f000001, 127.1, 0177.0.0.1). Names of other scripts
/// have to come in their ASCII form, "xn--". Source: RFC 3986, sections 2, 3 and 3.2.2.
[[nodiscard]] std::optional<Url> parse_url(std::string_view text);

/// The defect of an http or https URL, apart from its host: that it is too long, or has
/// control characters, backslashes, or percent signs without two digits in path or query.
[[nodiscard]] std::optional<std::string> target_problem(std::string_view text);

/// Whether text begins as an http or https URL does, in whatever case.
[[nodiscard]] bool is_http_url(std::string_view text);

/// Whether text begins with `prefix`, which is lower-case, in whatever case.
[[nodiscard]] bool begins_with(std::string_view text, std::string_view prefix);

/// ASCII letters in lower case, the rest as it is.
[[nodiscard]] std::string to_lower(std::string_view text);

/// Whether a lower-case host name has labels of letters, digits, '-' and '_', and its last is no
/// number. Source: RFC 1123, section 2.1.
[[nodiscard]] bool is_host_name(std::string_view host);

/// Text with %41 and the like replaced; nothing for a '%' without two hexadecimal digits.
/// Source: RFC 3986, section 2.1.
[[nodiscard]] std::optional<std::string> percent_decoded(std::string_view text);
/// Text with all but letters, digits and "-._~" percent-encoded: a segment of a path.
[[nodiscard]] std::string percent_encoded(std::string_view text);

}  // namespace fovea::serve
