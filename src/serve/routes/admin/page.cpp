#include "serve/routes/admin/routes.h"

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "core/sha256.h"
#include "serve/text/base64.h"

namespace fovea::embedded {
extern const std::string_view kPage;   // page.html; cmake/FoveaEmbed.cmake
extern const std::string_view kDocs;   // docs.html
extern const std::string_view kStyle;  // page.css, which they have in common
}  // namespace fovea::embedded

namespace fovea::serve {
namespace {

std::string sha256_base64(std::string_view text) { return to_base64(sha256(text)); }

/// The text between the tags of an element that the page has once.
std::string_view content_of(std::string_view page, const std::string& element) {
  const std::string tag = "<" + element + ">";
  const std::size_t begin = page.find(tag) + tag.size();
  return page.substr(begin, page.find("</" + element + ">") - begin);
}

/// Only the style and the script of the page itself, by their hashes, and requests to this server.
/// Source: Content Security Policy Level 3, sections 2.3.1 and 6.
std::string policy_of(std::string_view page) {
  return "default-src 'none'; script-src 'sha256-" + sha256_base64(content_of(page, "script")) +
         "'; style-src 'sha256-" + sha256_base64(content_of(page, "style")) +
         "'; img-src blob:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
         "frame-ancestors 'none'";
}

/// The headers that the page has, also when it has not changed.
Headers page_headers(std::string_view page) {
  return {{"Content-Security-Policy", policy_of(page)},
          {"X-Content-Type-Options", "nosniff"},
          {"Referrer-Policy", "no-referrer"},
          {"Cross-Origin-Opener-Policy", "same-origin"},
          {"Cross-Origin-Resource-Policy", "same-origin"},
          {"Cache-Control", "no-cache"},
          {"ETag", "\"" + sha256_base64(page) + "\""}};
}

/// A page with the common style in the place of a comment that names it.
std::string with_style(std::string_view page) {
  constexpr std::string_view kPlace = "/* page.css */\n";
  std::string whole(page);
  return whole.replace(whole.find(kPlace), kPlace.size(), embedded::kStyle);
}

/// @param page outlives the route.
Route route_of(std::string pattern, std::string_view summary, const std::string& page) {
  const auto send = [&page, headers = page_headers(page)](const std::shared_ptr<Exchange>& exchange,
                                                          const PathArguments&) {
    Reply reply;
    reply.headers = headers;
    if (has_entity(exchange->request().headers, headers.back().value)) {
      reply.status = kNotModified;
    } else {
      reply.content_type = "text/html; charset=utf-8";
      reply.body.push_back({std::as_bytes(std::span(page)), nullptr});
    }
    exchange->reply(std::move(reply));
  };
  return {.method = "GET",
          .pattern = std::move(pattern),
          .kind = RouteKind::kService,
          .handler = send,
          .text = {.summary = summary, .gives = {{.schema = schema::text, .type = "text/html"}}}};
}

}  // namespace

std::vector<Route> page_routes() {
  static const std::string kPage = with_style(embedded::kPage);
  static const std::string kDocs = with_style(embedded::kDocs);
  return {route_of("/", "A page that encodes a picture", kPage),
          route_of("/docs", "A page with all routes", kDocs)};
}

}  // namespace fovea::serve
