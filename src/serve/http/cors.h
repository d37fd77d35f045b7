#pragma once

#include <optional>
#include <string>
#include <vector>

#include "serve/http/message.h"

namespace fovea::serve {

/// Which pages of other origins a browser lets read replies, with the names and meanings of vLLM's
/// flags. Without origins there is no such page, and no header about it.
struct CorsOptions {
  std::vector<std::string> origins;       ///< "https://app.example.org", or "*": every one
  std::vector<std::string> methods{"*"};  ///< in upper case, or "*"
  std::vector<std::string> headers{"*"};  ///< of requests, or "*"
  bool allow_credentials = false;         ///< pages may send cookies and certificates along
};

/// Cross-origin resource sharing. It decides what browsers show to pages, not who may ask: keys are
/// checked as ever, and admin routes answer no page of another host.
/// Source: the Fetch standard, "CORS protocol"; Starlette 0.47, CORSMiddleware.
class Cors {
 public:
  /// No page of another origin.
  Cors() : Cors(CorsOptions{.origins = {}}) {}
  /// @throws Error(kInvalidArgument) for an origin that no browser sends: "*" or a scheme, a host
  /// and perhaps a port, in lower case, without a slash at the end.
  explicit Cors(CorsOptions options);

  /// The reply to a browser that asks before it sends a request of a page; nothing if that is not
  /// what it does, or there are no origins. No key is needed: it tells what the flags say.
  [[nodiscard]] std::optional<Reply> preflight(const RequestHead& head) const;

  /// Adds what lets the page that sent a request read its reply.
  void add_headers(const RequestHead& head, Reply& reply) const;

 private:
  [[nodiscard]] bool is_allowed(const std::string& origin) const;
  void add_origin(const std::string& origin, Reply& reply) const;

  CorsOptions options_;
  bool has_every_origin_;
};

}  // namespace fovea::serve
