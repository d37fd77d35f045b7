#include "serve/routes/openapi.h"

#include <algorithm>
#include <cctype>
#include <string>

#include "fovea/version.h"
#include "serve/routes/json_reply.h"
#include "serve/text/json.h"

namespace fovea::serve {
namespace {

Json error_schema() {
  const Json text{{"type", "string"}};
  const Json text_or_null{{"type", Json::array({"string", "null"})}};
  const Json error{{"type", "object"},
                   {"required", Json::array({"message", "type", "code"})},
                   {"properties",
                    {{"message", text},
                     {"type", text},
                     {"param", text_or_null},
                     {"code", text},
                     {"request_id", text}}}};
  return {
      {"type", "object"}, {"required", Json::array({"error"})}, {"properties", {{"error", error}}}};
}

/// A parameter for each {name} of a pattern.
Json path_parameters(const std::string& pattern) {
  Json parameters = Json::array();
  for (std::size_t at = pattern.find('{'); at != std::string::npos; at = pattern.find('{', at)) {
    const std::size_t end = pattern.find('}', at);
    parameters.push_back({{"name", pattern.substr(at + 1, end - at - 1)},
                          {"in", "path"},
                          {"required", true},
                          {"schema", {{"type", "string"}}}});
    at = end;
  }
  return parameters;
}

Json operation(const Route& route) {
  constexpr const char* kTags[] = {"service", "work", "admin"};
  const Json error{
      {"description", "An error"},
      {"content", {{"application/json", {{"schema", {{"$ref", "#/components/schemas/Error"}}}}}}}};
  Json json{{"tags", Json::array({kTags[static_cast<std::size_t>(route.kind)]})},
            {"responses", {{"200", {{"description", "Done"}}}, {"default", error}}}};
  const Json parameters = path_parameters(route.pattern);
  if (!parameters.empty()) json["parameters"] = parameters;
  return json;
}

Json description(const Router& router) {
  Json paths = Json::object();
  for (const Route& route : router.routes()) {
    std::string method = route.method;
    std::ranges::transform(method, method.begin(), [](unsigned char c) { return std::tolower(c); });
    paths[route.pattern][method] = operation(route);
  }
  return {{"openapi", "3.1.0"},
          {"info", {{"title", "fovea serve"}, {"version", version()}}},
          {"paths", paths},
          {"components", {{"schemas", {{"Error", error_schema()}}}}}};
}

}  // namespace

Route openapi_route(const Router& router) {
  return {.method = "GET",
          .pattern = "/openapi.json",
          .kind = RouteKind::kService,
          .handler = [&router](const std::shared_ptr<Exchange>& exchange, const PathArguments&) {
            exchange->reply(json_reply(description(router)));
          }};
}

}  // namespace fovea::serve
