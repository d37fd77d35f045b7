#include "serve/http/cors.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "serve/text/url.h"

namespace fovea::serve {
namespace {

constexpr const char* kEvery = "*";
constexpr const char* kEveryMethod = "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT";
/// Seconds that a browser may remember what it was told.
constexpr const char* kMaxAge = "600";
/// Headers that pages may always send. Source: the Fetch standard, "CORS-safelisted
/// request-header".
constexpr std::array<std::string_view, 4> kSafeHeaders{"accept", "accept-language",
                                                       "content-language", "content-type"};
/// What clients read of replies, beside what pages may always see.
constexpr const char* kExposed = "Retry-After, X-Request-Id";

bool has(const std::vector<std::string>& list, std::string_view entry) {
  return std::ranges::find(list, entry) != list.end();
}

std::string joined(const std::vector<std::string>& list) {
  std::string text;
  for (const std::string& entry : list) text += (text.empty() ? "" : ", ") + entry;
  return text;
}

bool varies_by_origin(const Reply& reply) {
  return std::ranges::any_of(reply.headers, [](const Header& header) {
    if (to_lower(header.name) != "vary") return false;
    const std::vector<std::string> names = listed_names(header.value);
    return has(names, "origin") || has(names, kEvery);
  });
}

bool is_origin(const std::string& text) {
  const std::optional<Url> url = parse_url(text);
  return url && url->target == "/" && !text.ends_with('/') && text == to_lower(text);
}

}  // namespace

Cors::Cors(CorsOptions options)
    : options_(std::move(options)), has_every_origin_(has(options_.origins, kEvery)) {
  for (const std::string& origin : options_.origins)
    FOVEA_CHECK(origin == kEvery || is_origin(origin), kInvalidArgument,
                "--allowed-origins: expected * or origins such as https://app.example.org, got ",
                origin);
}

bool Cors::is_allowed(const std::string& origin) const {
  return has_every_origin_ || has(options_.origins, origin);
}

void Cors::add_origin(const std::string& origin, Reply& reply) const {
  // "*" with credentials is refused by browsers, so the origin is named.
  const bool is_named = !has_every_origin_ || options_.allow_credentials;
  reply.headers.push_back({"Access-Control-Allow-Origin", is_named ? origin : kEvery});
  if (options_.allow_credentials)
    reply.headers.push_back({"Access-Control-Allow-Credentials", "true"});
}

std::optional<Reply> Cors::preflight(const RequestHead& head) const {
  if (options_.origins.empty() || head.method != "OPTIONS") return std::nullopt;
  const std::string* const origin = find_header(head.headers, "Origin");
  const std::string* const method = find_header(head.headers, "Access-Control-Request-Method");
  if (origin == nullptr || method == nullptr) return std::nullopt;
  const std::string* const asked = find_header(head.headers, "Access-Control-Request-Headers");
  std::string problems;
  const auto complain = [&](const char* what) {
    problems += (problems.empty() ? " " : ", ") + std::string(what);
  };
  if (!is_allowed(*origin)) complain("origin");
  if (!has(options_.methods, kEvery) && !has(options_.methods, *method)) complain("method");
  if (asked != nullptr && !has(options_.headers, kEvery)) {
    std::vector<std::string> allowed(kSafeHeaders.begin(), kSafeHeaders.end());
    for (const std::string& name : options_.headers) allowed.push_back(to_lower(name));
    if (!std::ranges::all_of(listed_names(*asked),
                             [&](const auto& name) { return has(allowed, name); }))
      complain("headers");
  }
  if (!problems.empty())
    return text_reply(400, "text/plain; charset=utf-8", "Disallowed CORS" + problems);
  Reply reply = text_reply(200, "text/plain; charset=utf-8", "OK");
  add_origin(*origin, reply);
  const bool has_every_method = has(options_.methods, kEvery);
  reply.headers.push_back(
      {"Access-Control-Allow-Methods", has_every_method ? kEveryMethod : joined(options_.methods)});
  if (asked != nullptr && has(options_.headers, kEvery))
    reply.headers.push_back({"Access-Control-Allow-Headers", *asked});
  else if (!has(options_.headers, kEvery))
    reply.headers.push_back({"Access-Control-Allow-Headers", joined(options_.headers)});
  reply.headers.push_back({"Access-Control-Max-Age", kMaxAge});
  reply.headers.push_back({"Vary", "Origin"});
  return reply;
}

void Cors::add_headers(const RequestHead& head, Reply& reply) const {
  if (options_.origins.empty() || find_header(reply.headers, "Access-Control-Allow-Origin")) return;
  const std::string* const origin = find_header(head.headers, "Origin");
  if (!varies_by_origin(reply)) reply.headers.push_back({"Vary", "Origin"});
  if (origin == nullptr || !is_allowed(*origin)) return;
  add_origin(*origin, reply);
  reply.headers.push_back({"Access-Control-Expose-Headers", kExposed});
}

}  // namespace fovea::serve
