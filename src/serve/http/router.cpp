#include "serve/http/router.h"

#include <optional>
#include <utility>

namespace fovea::serve {
namespace {

/// Cuts the text behind the next '/' off, and returns it; the slash is gone.
std::string_view take_segment(std::string_view& path) {
  path.remove_prefix(1);
  const std::string_view segment = path.substr(0, path.find('/'));
  path.remove_prefix(segment.size());
  return segment;
}

/// The segments of the path for {names} of the pattern; nothing if the path does not fit.
std::optional<PathArguments> match(std::string_view pattern, std::string_view path) {
  PathArguments arguments;
  while (pattern.starts_with('/') && path.starts_with('/')) {
    const std::string_view expected = take_segment(pattern);
    const std::string_view segment = take_segment(path);
    const bool is_name = expected.starts_with('{');
    if (is_name ? segment.empty() : segment != expected) return std::nullopt;
    if (is_name) arguments.emplace_back(segment);
  }
  if (!pattern.empty() || !path.empty()) return std::nullopt;
  return arguments;
}

bool takes(const Route& route, std::string_view method) {
  return route.method == method || (route.method == "GET" && method == "HEAD");
}

}  // namespace

Route get_route(std::string pattern, RouteText text,
                std::function<Reply(const PathArguments&)> answer) {
  return {.method = "GET",
          .pattern = std::move(pattern),
          .handler = [answer = std::move(answer)](
                         const std::shared_ptr<Exchange>& exchange,
                         const PathArguments& names) { exchange->reply(answer(names)); },
          .text = std::move(text)};
}

Route get_route(std::string pattern, RouteText text, std::function<Reply()> answer) {
  return get_route(std::move(pattern), std::move(text),
                   [answer = std::move(answer)](const PathArguments&) { return answer(); });
}

Route probe_route(std::string pattern, RouteText text, std::function<Reply()> answer) {
  Route route = get_route(std::move(pattern), std::move(text), std::move(answer));
  route.is_instant = true;
  return route;
}

void Router::add(Route route) { routes_.push_back(std::move(route)); }

std::variant<Router::Found, Router::NoPath, Router::NoMethod> Router::find(
    std::string_view method, std::string_view path) const {
  std::string allowed;
  for (const Route& route : routes_) {
    std::optional<PathArguments> arguments = match(route.pattern, path);
    if (!arguments) continue;
    if (takes(route, method)) return Found{&route, std::move(*arguments)};
    allowed +=
        (allowed.empty() ? "" : ", ") + route.method + (route.method == "GET" ? ", HEAD" : "");
  }
  if (allowed.empty()) return NoPath{};
  return NoMethod{allowed};
}

std::optional<std::string_view> below_root(std::string_view path, std::string_view root) {
  if (!path.starts_with(root)) return std::nullopt;
  path.remove_prefix(root.size());
  if (path.empty()) return "/";
  if (!path.starts_with('/')) return std::nullopt;
  return path;
}

}  // namespace fovea::serve
