#include "serve/upstream/passed_headers.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <string_view>

#include "serve/text/url.h"

namespace fovea::serve {
namespace {

/// Those that mean a connection. Source: RFC 9110, 7.6.1, and RFC 2616, 13.5.1.
constexpr std::array<std::string_view, 9> kOfConnections{"connection",
                                                         "keep-alive",
                                                         "proxy-connection",
                                                         "proxy-authenticate",
                                                         "transfer-encoding",
                                                         "proxy-authorization",
                                                         "te",
                                                         "trailer",
                                                         "upgrade"};
/// Those of a request that are the transport's, or are spoken to the proxy.
constexpr std::array<std::string_view, 6> kOfRequests{
    "host", "content-length", "expect", "via", "x-request-id", "x-request-timeout-ms"};
constexpr std::array<std::string_view, 2> kKeys{"authorization", "x-api-key"};
/// Those that the transport writes into every reply.
constexpr std::array<std::string_view, 4> kOfReplies{"content-length", "date", "server",
                                                     "x-request-id"};

bool is_one_of(std::span<const std::string_view> names, std::string_view lower_name) {
  return std::ranges::find(names, lower_name) != names.end();
}

/// The names that the headers Connection list, in lower case.
std::vector<std::string> connection_names(const Headers& headers) {
  std::vector<std::string> names;
  for (const Header& header : headers) {
    if (to_lower(header.name) == "connection")
      std::ranges::move(listed_names(header.value), std::back_inserter(names));
  }
  return names;
}

/// The headers that are neither of a connection nor in `others`.
Headers passed(const Headers& headers, std::span<const std::string_view> others) {
  const std::vector<std::string> listed = connection_names(headers);
  Headers kept;
  for (const Header& header : headers) {
    const std::string name = to_lower(header.name);
    const bool is_dropped = is_one_of(kOfConnections, name) || is_one_of(others, name) ||
                            std::ranges::find(listed, name) != listed.end();
    if (!is_dropped) kept.push_back(header);
  }
  return kept;
}

}  // namespace

Headers passed_request_headers(const RequestHead& head, const UpstreamKey& key) {
  Headers headers = passed(head.headers, kOfRequests);
  const bool passes_keys = key.api_key.empty() && key.passes_client_keys;
  std::erase_if(headers, [&](const Header& header) {
    return is_one_of(kKeys, to_lower(header.name)) &&
           (!passes_keys ||
            key.admin_keys.contains(bearer_key(header.value).value_or(header.value)));
  });
  if (!key.api_key.empty()) headers.push_back({"Authorization", "Bearer " + key.api_key});
  if (head.method == "POST" && find_header(headers, "Content-Type") == nullptr) {
    headers.push_back({"Content-Type", "application/json"});
  }
  headers.push_back({"X-Request-Id", head.id});
  headers.push_back({"Via", "1.1 fovea"});
  return headers;
}

Headers passed_answer_headers(const Headers& headers) { return passed(headers, kOfReplies); }

}  // namespace fovea::serve
