#include "serve/http/head_parser.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "serve/api_error.h"
#include "serve/http/message.h"
#include "serve/text/headers.h"
#include "serve/text/url.h"

namespace fovea::serve {
namespace {

constexpr std::string_view kBreak = "\r\n";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

bool equals_ignoring_case(std::string_view text, std::string_view lower_case) {
  return std::ranges::equal(text, lower_case, {}, [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(" \t"), text.size());
  text.remove_prefix(begin);
  return text.substr(0, text.find_last_not_of(" \t") + 1);
}

/// Cuts the text before `separator` off, and returns it; all of it if there is none.
std::string_view take_until(std::string_view& text, std::string_view separator) {
  const std::string_view part = text.substr(0, text.find(separator));
  text.remove_prefix(std::min(part.size() + separator.size(), text.size()));
  return part;
}

/// @return whether it is HTTP/1.0.
bool parse_version(std::string_view version) {
  if (version == "HTTP/1.1") return false;
  if (version == "HTTP/1.0") return true;
  if (version.size() == 8 && version.starts_with("HTTP/") && is_digit(version[5]) &&
      version[6] == '.' && is_digit(version[7])) {
    throw ApiError(505, "http_version_not_supported", "the server speaks HTTP/1.1 and HTTP/1.0");
  }
  throw malformed("the first line is not that of an HTTP request");
}

/// Cuts scheme and host off a target in absolute form ("http://host/path"), which clients send to
/// proxies. @return the host; empty: it is in another form. Source: RFC 9112, 3.2.2.
std::string_view take_host(std::string_view& target) {
  if (!is_http_url(target)) return {};
  target.remove_prefix(target.find("//") + 2);
  const std::string_view host = target.substr(0, target.find_first_of("/?#"));
  if (host.empty() || host.find('@') != std::string_view::npos) {
    throw malformed("the target is a URL without a host, or with a user");
  }
  target.remove_prefix(host.size());
  return host;
}

/// @return the host that the target names; empty: none.
std::string_view parse_request_line(std::string_view line, RequestHead& head, Framing& framing) {
  const std::string_view method = take_until(line, " ");
  std::string_view target = take_until(line, " ");
  framing.is_http_1_0 = parse_version(line);
  framing.keep_alive = !framing.is_http_1_0;
  if (!is_http_token(method)) throw malformed("the method is none");
  head.method = method;
  const std::string_view host = take_host(target);
  head.path = target.substr(0, target.find('?'));  // errors have the form of its protocol
  const bool lacks_path = !host.empty() && !target.starts_with('/');
  Target parts = split_target((lacks_path ? "/" : "") + std::string(target));
  head.path = std::move(parts.path);
  head.query = std::move(parts.query);
  return host;
}

Header parse_header(std::string_view line) {
  if (line.starts_with(' ') || line.starts_with('\t')) throw malformed("a header is folded");
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos || !is_http_token(line.substr(0, colon))) {
    throw malformed("a header has no name");
  }
  return {std::string(line.substr(0, colon)), std::string(trimmed(line.substr(colon + 1)))};
}

/// Calls `action` with the value of every header of that name.
template <typename Action>
void for_each_value(const Headers& headers, std::string_view lower_name, Action&& action) {
  for (const Header& header : headers) {
    if (equals_ignoring_case(header.name, lower_name)) action(std::string_view(header.value));
  }
}

/// Digits as a number; nothing if it is not made of digits alone, the largest if it is larger.
std::optional<std::uint64_t> parse_number(std::string_view text) {
  if (text.empty() || !std::ranges::all_of(text, is_digit)) return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() ? value : UINT64_MAX;
}

void parse_length(RequestHead& head, Framing& framing) {
  for_each_value(head.headers, "content-length", [&](std::string_view value) {
    const std::optional<std::uint64_t> length = parse_number(value);
    if (!length) throw malformed("Content-Length is no number");
    if (head.content_length.value_or(*length) != *length) {
      throw malformed("there are two values of Content-Length");
    }
    head.content_length = length;
  });
  framing.content_length = head.content_length.value_or(0);
}

void parse_transfer_encoding(RequestHead& head, Framing& framing) {
  for_each_value(head.headers, "transfer-encoding", [&](std::string_view value) {
    if (framing.is_http_1_0) throw malformed("HTTP/1.0 has no Transfer-Encoding");
    if (head.content_length) throw malformed("Content-Length stands beside Transfer-Encoding");
    if (framing.is_chunked || !equals_ignoring_case(value, "chunked")) {
      throw ApiError(501, "transfer_coding_not_supported",
                     "the only transfer coding of the server is chunked");
    }
    framing.is_chunked = true;
  });
}

/// "close" wins over "keep-alive", wherever they stand.
void parse_connection(const RequestHead& head, Framing& framing) {
  bool closes = false;
  for_each_value(head.headers, "connection", [&](std::string_view value) {
    while (!value.empty()) {
      const std::string_view option = trimmed(take_until(value, ","));
      closes = closes || equals_ignoring_case(option, "close");
      framing.keep_alive = framing.keep_alive || equals_ignoring_case(option, "keep-alive");
    }
  });
  framing.keep_alive = framing.keep_alive && !closes;
}

void parse_expect(const RequestHead& head, Framing& framing) {
  for_each_value(head.headers, "expect", [&](std::string_view value) {
    if (!equals_ignoring_case(value, "100-continue")) {
      throw ApiError(417, "expectation_failed", "the only expectation is 100-continue");
    }
    framing.expects_continue = !framing.is_http_1_0;  // which has no interim replies
  });
}

void parse_timeout(RequestHead& head) {
  for_each_value(head.headers, "x-request-timeout-ms", [&](std::string_view value) {
    const std::optional<std::uint64_t> limit = parse_number(value);
    if (!limit || *limit == 0) {
      throw ApiError(400, "invalid_value", "X-Request-Timeout-Ms is no positive number",
                     "X-Request-Timeout-Ms");
    }
    constexpr std::uint64_t kYear = 366ull * 24 * 3600 * 1000;
    const std::chrono::milliseconds longest(std::min(*limit, kYear));
    head.deadline = std::min(head.deadline, head.arrival + longest);
  });
}

/// Source: RFC 9112, 3.2: a request of HTTP/1.1 names one host.
void check_host(const RequestHead& head, const Framing& framing) {
  int hosts = 0;
  for_each_value(head.headers, "host", [&](std::string_view) { ++hosts; });
  if (hosts > 1 || (hosts == 0 && !framing.is_http_1_0)) {
    throw malformed("the request does not name one Host");
  }
}

/// The host of the target stands for that of the header. Source: RFC 9112, 3.2.2.
void use_host(std::string_view host, RequestHead& head) {
  if (host.empty()) return;
  std::erase_if(head.headers,
                [](const Header& header) { return equals_ignoring_case(header.name, "host"); });
  head.headers.push_back({"Host", std::string(host)});
}

void parse_headers(std::string_view text, int max_headers, RequestHead& head) {
  while (text != kBreak) {
    if (head.headers.size() >= static_cast<std::size_t>(max_headers)) {
      throw ApiError(431, "headers_too_large",
                     "a request has at most " + std::to_string(max_headers) + " headers");
    }
    const Header& header = head.headers.emplace_back(parse_header(take_until(text, kBreak)));
    if (equals_ignoring_case(header.name, "x-request-id") && is_request_id(header.value)) {
      head.id = header.value;
    }
  }
}

std::string decoded(std::string_view path) {
  std::optional<std::string> text = percent_decoded(path);
  if (!text) throw malformed("the path holds a '%' without two hexadecimal digits");
  const auto is_control = [](char character) {
    const auto code = static_cast<std::uint8_t>(character);
    return code < 0x20 || code == 0x7f;
  };
  if (std::ranges::any_of(*text, is_control)) {
    throw malformed("the path holds a control character");
  }
  return *std::move(text);
}

}  // namespace

std::optional<std::size_t> HeadScanner::scan(std::string_view input) {
  for (; scanned_ < input.size(); ++scanned_) {
    const char character = input[scanned_];
    const bool follows_return = scanned_ > 0 && input[scanned_ - 1] == '\r';
    if (follows_return != (character == '\n')) throw malformed("a line break is not CR LF");
    const auto code = static_cast<std::uint8_t>(character);
    const bool is_control = code < 0x20 || code == 0x7f;
    if (is_control && std::string_view("\r\n\t").find(character) == std::string_view::npos) {
      throw malformed("the head of the request holds a control character");
    }
    if (character == '\n' && input.substr(0, scanned_ + 1).ends_with("\r\n\r\n")) {
      return ++scanned_;
    }
  }
  return std::nullopt;
}

std::size_t leading_breaks(std::string_view input) {
  std::size_t size = 0;
  while (input.substr(size).starts_with(kBreak)) size += kBreak.size();
  return size;
}

Framing parse_head(std::string_view text, int max_headers, RequestHead& head) {
  Framing framing;
  const std::string_view host = parse_request_line(take_until(text, kBreak), head, framing);
  parse_headers(text, max_headers, head);
  check_host(head, framing);
  use_host(host, head);
  parse_length(head, framing);
  parse_transfer_encoding(head, framing);
  parse_connection(head, framing);
  parse_expect(head, framing);
  parse_timeout(head);
  if (!framing.is_chunked) head.content_length = framing.content_length;
  return framing;
}

Target split_target(std::string_view target) {
  if (!target.starts_with('/')) throw malformed("the path does not begin with '/'");
  const auto is_strange = [](char character) {
    return character <= ' ' || character > '~' || character == '#';
  };
  if (std::ranges::any_of(target, is_strange)) {
    throw malformed("the path holds a character that has to be percent-encoded");
  }
  const std::size_t end = std::min(target.find('?'), target.size());
  Target parts{.path = decoded(target.substr(0, end)), .query = {}};
  if (end < target.size()) parts.query = target.substr(end + 1);
  return parts;
}

}  // namespace fovea::serve
