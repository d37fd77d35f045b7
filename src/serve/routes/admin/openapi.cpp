#include "serve/routes/admin/routes.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <string>

#include "fovea/version.h"
#include "serve/http/message.h"

namespace fovea::serve {
namespace {

JsonObject error_schema() {
  const JsonObject text{{"type", "string"}};
  const JsonObject text_or_null{{"type", JsonArray::of("string", "null")}};
  const JsonObject members{{"message", text},
                           {"type", text},
                           {"param", text_or_null},
                           {"code", text},
                           {"request_id", text}};
  const JsonObject error{{"type", "object"},
                         {"required", JsonArray::of("message", "type", "code")},
                         {"properties", members}};
  return {{"type", "object"},
          {"required", JsonArray::of("error")},
          {"properties", JsonObject{{"error", error}}}};
}

/// A parameter for each {name} of a pattern.
JsonArray path_parameters(const std::string& pattern) {
  JsonArray parameters;
  for (std::size_t at = pattern.find('{'); at != std::string::npos; at = pattern.find('{', at)) {
    const std::size_t end = pattern.find('}', at);
    parameters.add(JsonObject{{"name", pattern.substr(at + 1, end - at - 1)},
                              {"in", "path"},
                              {"required", true},
                              {"schema", JsonObject{{"type", "string"}}}});
    at = end;
  }
  return parameters;
}

JsonObject operation(const Route& route) {
  constexpr const char* kTags[] = {"service", "work", "admin"};
  const JsonObject schema{{"schema", JsonObject{{"$ref", "#/components/schemas/Error"}}}};
  const JsonObject error{{"description", "An error"},
                         {"content", JsonObject{{"application/json", schema}}}};
  JsonObject json{
      {"tags", JsonArray::of(kTags[static_cast<std::size_t>(route.kind)])},
      {"responses", JsonObject{{"200", JsonObject{{"description", "Done"}}}, {"default", error}}}};
  const JsonArray parameters = path_parameters(route.pattern);
  if (!parameters.empty()) json.set("parameters", parameters);
  return json;
}

/// The methods of every pattern, by their names.
JsonObject paths_of(const Router& router) {
  std::map<std::string_view, JsonObject> operations;
  for (const Route& route : router.routes()) {
    std::string method = route.method;
    std::ranges::transform(method, method.begin(), [](unsigned char c) { return std::tolower(c); });
    operations[route.pattern].set(method, operation(route));
  }
  JsonObject paths;
  for (const auto& [pattern, methods] : operations) paths.set(pattern, methods);
  return paths;
}

JsonObject description(const Router& router) {
  return {{"openapi", "3.1.0"},
          {"info", JsonObject{{"title", "fovea serve"}, {"version", version()}}},
          {"paths", paths_of(router)},
          {"components", JsonObject{{"schemas", JsonObject{{"Error", error_schema()}}}}}};
}

}  // namespace

Route openapi_route(const Router& router) {
  return get_route("/openapi.json", [&router] { return json_reply(description(router)); });
}

}  // namespace fovea::serve
