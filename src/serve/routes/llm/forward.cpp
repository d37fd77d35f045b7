// Requests that are forwarded as they come.
#include <string>
#include <utility>

#include "serve/routes/llm/routes.h"
#include "serve/text/url.h"

namespace fovea::serve {
namespace {

/// A route whose requests are forwarded. @param path of the request, made of the arguments.
Route forwarded(Forwarder& forwarder, const std::string& method, std::string pattern,
                RouteText text, std::function<std::string(const PathArguments&)> path) {
  const auto handler = [&forwarder, method, path = std::move(path)](
                           const std::shared_ptr<Exchange>& exchange, const PathArguments& names) {
    const Request& request = exchange->request();
    ForwardedCall call{.method = method, .target = target_of(request, path(names))};
    if (!request.body->empty()) {
      call.body.push_back({std::as_bytes(std::span(request.text())), request.body});
    }
    forwarder.forward(exchange, std::move(call));
  };
  return {.method = method,
          .pattern = std::move(pattern),
          .kind = RouteKind::kWork,
          .handler = handler,
          .text = std::move(text)};
}

std::string model_path(const PathArguments& names) {
  std::string path = "/v1/models";
  for (const std::string& name : names) path += "/" + percent_encoded(name);
  return path;
}

}  // namespace

std::string target_of(const RequestHead& head, const std::string& path) {
  return head.query.empty() ? path : path + "?" + head.query;
}

std::vector<Route> llm_routes(Forwarder& forwarder) {
  const RouteText models{.summary = "What the language model says of itself",
                         .gives = {{.schema = schema::object}}};
  return {forwarded(forwarder, "POST", "/v1/completions",
                    {.summary = "Forwards text to be completed to a language model",
                     .takes = {{.schema = schema::object}},
                     .gives = {{.schema = schema::object},
                               {.schema = schema::text, .type = "text/event-stream"}},
                     .example = R"(--json '{"model": "m", "prompt": "Once"}')"},
                    [](const PathArguments&) { return "/v1/completions"; }),
          forwarded(forwarder, "GET", "/v1/models", models, model_path),
          forwarded(forwarder, "GET", "/v1/models/{id}", models, model_path),
          forwarded(forwarder, "GET", "/v1/models/{organisation}/{id}", models, model_path)};
}

}  // namespace fovea::serve
