#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "serve/http/exchange.h"
#include "serve/text/schema.h"

namespace fovea::serve {

/// The segments of a path that stood in the places of {names} of a pattern, in their order.
using PathArguments = std::vector<std::string>;

/// Answers a request, now or later on any thread, by Exchange::reply(). Runs on a worker thread
/// unless its route is instant, so that it may parse and decode; must not wait for other requests
/// or for rows. What it throws is the reply, as current_api_error() has it.
using Handler = std::function<void(const std::shared_ptr<Exchange>&, const PathArguments&)>;

/// Whether the requests of a route count towards limits, and who may send them.
enum class RouteKind {
  kService,  ///< health, metrics, descriptions: small, answered at once, also under overload
  kWork,     ///< encodes or plans: counted, refused while starting, draining and overloaded
  kAdmin,    ///< changes the server: needs the admin key
};

/// A body that a route takes or gives.
struct Content {
  SchemaOf schema;
  std::string_view type = "application/json";
  int status = 200;  ///< of the reply
};

/// The parameters of requests that are not in the path, as OpenAPI has them.
using ParametersOf = std::vector<JsonObject> (*)();

/// What /openapi.json and the page /docs say of a route. Errors are the same for all.
struct RouteText {
  std::string_view summary;
  std::vector<Content> takes = {};
  std::vector<Content> gives = {};
  ParametersOf parameters = nullptr;
  std::string_view about = {};  ///< more, for whom the summary is not enough
  /// What follows the URL in a call by curl, for people; nothing: the route takes no body.
  std::string_view example = {};
};

struct Route {
  std::string method;   ///< GET routes answer HEAD, too, without the body
  std::string pattern;  ///< "/v1/cache/{key}": {name} stands for one segment that is not empty
  RouteKind kind = RouteKind::kService;
  Handler handler;
  /// Its handler takes microseconds and never waits, but for large bodies: it runs on the thread of
  /// the connection, so that threads that compute, and are busy, do not delay it.
  bool is_instant = false;
  RouteText text = {};
};

/// A GET route of kService whose reply follows from its path. @param answer what it throws is the
/// reply, as of a Handler.
[[nodiscard]] Route get_route(std::string pattern, RouteText text,
                              std::function<Reply(const PathArguments&)> answer);
/// The same for a path without arguments.
[[nodiscard]] Route get_route(std::string pattern, RouteText text, std::function<Reply()> answer);
/// The same for who asks all the time, and whether everybody else is busy: is_instant.
[[nodiscard]] Route probe_route(std::string pattern, RouteText text, std::function<Reply()> answer);

/// The routes of a server. Filled at the start, then read by all threads.
class Router {
 public:
  void add(Route route);

  struct Found {
    const Route* route = nullptr;
    PathArguments arguments;
  };
  struct NoPath {};
  struct NoMethod {
    std::string allowed;  ///< for the header Allow: "GET, HEAD"
  };
  /// The first route, in the order they were added, that fits. @param path as in RequestHead.
  [[nodiscard]] std::variant<Found, NoPath, NoMethod> find(std::string_view method,
                                                           std::string_view path) const;
  [[nodiscard]] const std::vector<Route>& routes() const noexcept { return routes_; }

 private:
  std::vector<Route> routes_;
};

/// The path below the root path: "/v1" of "/api/v1" for the root "/api". Nothing for paths outside.
/// @param root "/api", or empty.
[[nodiscard]] std::optional<std::string_view> below_root(std::string_view path,
                                                         std::string_view root);

}  // namespace fovea::serve
