#include "serve/media/fetch_headers.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <utility>

#include "core/check.h"
#include "core/file.h"
#include "core/json.h"

namespace fovea::serve {
namespace {

constexpr const char* kAllHosts = "*";
constexpr std::string_view kProxyAuthorization = "proxy-authorization";
constexpr std::size_t kMostFileBytes = std::size_t{1} << 20;
constexpr std::size_t kMostValueBytes = std::size_t{8} << 10;

/// What the transport sets, or what would change the meaning of its request or of the reply.
constexpr std::array<std::string_view, 12> kOfTransport{
    "accept-encoding",   "connection", "content-length", "expect", "host",
    "if-range",          "keep-alive", "range",          "te",     "trailer",
    "transfer-encoding", "upgrade"};
constexpr std::array<std::string_view, 3> kCredentials{"authorization", "cookie",
                                                       kProxyAuthorization};

template <class Names>
bool has(const Names& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

/// @param source for the message, which does not show the value.
Header checked(std::string_view name, std::string_view value, const std::string& source) {
  FOVEA_CHECK(is_http_token(name), kInvalidArgument, source,
              ": expected a header as 'Name: value', got no name");
  const std::string lower = to_lower(name);
  FOVEA_CHECK(!has(kOfTransport, lower), kInvalidArgument, source, ": the header ", name,
              " is set by the transport");
  const bool is_visible = std::ranges::all_of(value, [](char character) {
    const auto code = static_cast<unsigned char>(character);
    return code == '\t' || (code >= ' ' && code != 0x7F);
  });
  FOVEA_CHECK(is_visible && !value.empty() && value.size() <= kMostValueBytes, kInvalidArgument,
              source, ": the header ", name, " has a value that is empty, has control characters",
              " or more than ", kMostValueBytes, " bytes");
  return {std::string(name), std::string(value)};
}

void replace(Headers& headers, Header header) {
  const std::string name = to_lower(header.name);
  std::erase_if(headers, [&](const Header& other) { return to_lower(other.name) == name; });
  headers.push_back(std::move(header));
}

/// @throws Error(kInvalidArgument) if a file of secrets is open to others.
void check_access(const InputFile& file, const std::string& path) {
  struct stat facts {};
  FOVEA_CHECK(fstat(file.descriptor(), &facts) == 0, kIo, path, ": ", std::strerror(errno));
  FOVEA_CHECK(facts.st_uid == 0 || facts.st_uid == geteuid(), kInvalidArgument, path,
              ": expected a file of this user or of root");
  constexpr mode_t kOfOthers = S_IWGRP | S_IRWXO;
  FOVEA_CHECK((facts.st_mode & kOfOthers) == 0, kInvalidArgument, path,
              ": expected a file that others cannot read, and its group cannot change (chmod 600)");
}

std::string text_of(const InputFile& file, const std::string& path) {
  FOVEA_CHECK(file.size_bytes() <= kMostFileBytes, kInvalidArgument, path, ": expected at most ",
              kMostFileBytes, " bytes, got ", file.size_bytes());
  std::string text(file.size_bytes(), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(text)));
  return text;
}

/// The origin that a key names. @throws Error(kInvalidArgument) for other URLs.
std::string origin_of_key(std::string_view key, const std::string& path) {
  const std::optional<Url> url = parse_url(key);
  const bool is_origin = url && url->target == "/" && !key.ends_with('/');
  FOVEA_CHECK(is_origin, kInvalidArgument, path,
              ": expected \"*\" or an origin such as https://images.example.org, got ", key);
  return origin_of(*url);
}

}  // namespace

std::string origin_of(const Url& url) {
  const std::string host = url.kind == HostKind::kIpv6 ? "[" + url.host + "]" : url.host;
  return (url.is_https ? "https://" : "http://") + host + ":" + std::to_string(url.port);
}

void FetchHeaders::add(std::string_view line, const std::string& source) {
  const std::size_t colon = std::min(line.find(':'), line.size());
  std::string_view value = line.substr(std::min(colon + 1, line.size()));
  value.remove_prefix(std::min(value.find_first_not_of(" \t"), value.size()));
  Header header = checked(line.substr(0, colon), value, source);
  FOVEA_CHECK(!has(kCredentials, to_lower(header.name)), kInvalidArgument, source, ": the header ",
              header.name, " is a secret of one host; it belongs into --media-headers-file, under",
              " the origin of that host");
  replace(by_origin_[kAllHosts], std::move(header));
}

void FetchHeaders::read(const std::string& path) {
  const InputFile file(path);
  check_access(file, path);
  const JsonDocument document =
      JsonDocument::parse(text_of(file, path), path, DuplicateKeys::kReject);
  const JsonView root = document.root();
  for (std::size_t i = 0; i < root.num_members(); ++i) {
    const std::string_view key = root.key(i);
    const bool is_all = key == kAllHosts;
    const std::string origin = is_all ? kAllHosts : origin_of_key(key, path);
    const JsonView headers = root.member(i);
    for (std::size_t j = 0; j < headers.num_members(); ++j) {
      const JsonView value = headers.member(j);
      FOVEA_CHECK(value.is_string(), kInvalidArgument, value.path(), ": expected a text");
      Header header = checked(headers.key(j), value.as_text(), path);
      FOVEA_CHECK(!is_all || !has(kCredentials, to_lower(header.name)), kInvalidArgument, path,
                  ": the header ", header.name, " is a secret of one host, not of \"*\"");
      replace(by_origin_[origin], std::move(header));
    }
  }
}

Headers FetchHeaders::of(const Url& url) const {
  Headers headers;
  for (const std::string& origin : {std::string(kAllHosts), origin_of(url)}) {
    const auto found = by_origin_.find(origin);
    if (found == by_origin_.end()) continue;
    for (const Header& header : found->second)
      if (to_lower(header.name) != kProxyAuthorization) replace(headers, header);
  }
  return headers;
}

Headers FetchHeaders::of_proxy(const Url& proxy) const {
  const auto found = by_origin_.find(origin_of(proxy));
  if (found == by_origin_.end()) return {};
  const std::string* const value = find_header(found->second, kProxyAuthorization);
  return value == nullptr ? Headers{} : Headers{{"Proxy-Authorization", *value}};
}

}  // namespace fovea::serve
