#include "serve/routes/admin/routes.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "fovea/version.h"
#include "serve/http/message.h"
#include "serve/text/schema.h"

namespace fovea::serve {
namespace {

constexpr std::array<ReplyMember, 5> kErrorMembers{
    {{"message", schema::text, "What was expected and what came, for people"},
     {"type", schema::text, "The kind of its status"},
     {"param", schema::or_null<schema::text>, "The member or item that is wrong"},
     {"code", schema::text, "What programs compare"},
     {"request_id", schema::text, "As in the log"}}};
constexpr ReplyObject kErrorObject{"ErrorObject", kErrorMembers};
constexpr std::array<ReplyMember, 1> kErrorReplyMembers{
    {{"error", schema::reply<kErrorObject>, "The first that was found"}}};
constexpr ReplyObject kErrorReply{"Error", kErrorReplyMembers};
constexpr std::array<ReplyMember, 1> kKserveErrorMembers{
    {{"error", schema::text, "Code and message"}}};
constexpr ReplyObject kKserveError{"KserveError", kKserveErrorMembers};

std::string lower_case(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

/// "post_v1_cache_key" of POST /v1/cache/{key}.
std::string operation_id(const Route& route) {
  std::string id = lower_case(route.method);
  for (const char character : route.pattern) {
    if (character == '/' && !id.ends_with('_')) id += '_';
    if (std::isalnum(static_cast<unsigned char>(character)) != 0) id += character;
    if (character == '_' || character == '.') id += '_';
  }
  return id.ends_with('_') ? id + "root" : id;
}

/// A parameter for each {name} of the pattern, then those of the query and of headers.
std::vector<JsonObject> parameters_of(const Route& route) {
  std::vector<JsonObject> parameters;
  const std::string& pattern = route.pattern;
  for (std::size_t at = pattern.find('{'); at != std::string::npos; at = pattern.find('{', at)) {
    const std::size_t end = pattern.find('}', at);
    parameters.push_back({{"name", pattern.substr(at + 1, end - at - 1)},
                          {"in", "path"},
                          {"required", true},
                          {"schema", JsonObject{{"type", "string"}, {"minLength", 1}}}});
    at = end;
  }
  if (route.text.parameters != nullptr) {
    for (JsonObject& parameter : route.text.parameters())
      parameters.push_back(std::move(parameter));
  }
  return parameters;
}

/// The bodies of a request or of the replies of a status, by their types.
JsonObject content_of(const std::vector<Content>& contents, int status, SchemaSet& named) {
  JsonObject json;
  for (const Content& content : contents) {
    if (content.status != status) continue;
    json.set(content.type, JsonObject{{"schema", content.schema(named)}});
  }
  return json;
}

JsonObject responses_of(const Route& route, SchemaSet& named) {
  const bool is_kserve = route.pattern.starts_with("/v2/") && route.pattern != "/v2/embed";
  const JsonObject error =
      is_kserve ? schema::reply<kKserveError>(named) : schema::reply<kErrorReply>(named);
  JsonObject responses{{"200", JsonObject{{"description", "Done"},
                                          {"content", content_of(route.text.gives, 200, named)}}}};
  const JsonObject unavailable = content_of(route.text.gives, 503, named);
  if (!unavailable.empty()) {
    responses.set("503", JsonObject{{"description", "Not now"}, {"content", unavailable}});
  }
  const JsonObject content{{"application/json", JsonObject{{"schema", error}}}};
  responses.set("default", JsonObject{{"description", "An error"}, {"content", content}});
  return responses;
}

/// As a person calls it.
JsonArray samples_of(const Route& route) {
  std::string call = "curl -sS ";
  if (route.method != "GET") call += "-X " + route.method + " ";
  call += "http://localhost:8000" + route.pattern;
  if (!route.text.example.empty()) call += " " + std::string(route.text.example);
  return JsonArray::of(JsonObject{{"lang", "shell"}, {"source", call}});
}

JsonObject operation(const Route& route, SchemaSet& named) {
  constexpr const char* kTags[] = {"service", "work", "admin"};
  JsonObject json{{"operationId", operation_id(route)},
                  {"tags", JsonArray::of(kTags[static_cast<std::size_t>(route.kind)])},
                  {"summary", route.text.summary}};
  if (!route.text.about.empty()) json.set("description", route.text.about);
  const std::vector<JsonObject> parameters = parameters_of(route);
  if (!parameters.empty()) json.set("parameters", parameters);
  const JsonObject takes = content_of(route.text.takes, 200, named);
  if (!takes.empty()) {
    json.set("requestBody", JsonObject{{"required", true}, {"content", takes}});
  }
  json.set("responses", responses_of(route, named));
  json.set("x-codeSamples", samples_of(route));
  return json;
}

/// The methods of every pattern, by their names.
JsonObject paths_of(const Router& router, SchemaSet& named) {
  std::map<std::string_view, JsonObject> operations;
  for (const Route& route : router.routes()) {
    operations[route.pattern].set(lower_case(route.method), operation(route, named));
  }
  JsonObject paths;
  for (const auto& [pattern, methods] : operations) paths.set(pattern, methods);
  return paths;
}

/// Keys are asked for on some routes, on all, or on none, as the server was started.
JsonObject security_schemes() {
  return {{"bearer", JsonObject{{"type", "http"}, {"scheme", "bearer"}}},
          {"key", JsonObject{{"type", "apiKey"}, {"in", "header"}, {"name", "X-API-Key"}}}};
}

JsonObject description(const Router& router) {
  SchemaSet named;
  const JsonObject paths = paths_of(router, named);
  const JsonObject none;
  return {{"openapi", "3.1.0"},
          {"info", JsonObject{{"title", "Fovea"},
                              {"version", version()},
                              {"description", "Rows of embeddings of images and videos"}}},
          {"servers", JsonArray::of(JsonObject{{"url", "./"}})},
          {"security", JsonArray::of(none, JsonObject{{"bearer", JsonArray()}},
                                     JsonObject{{"key", JsonArray()}})},
          {"paths", paths},
          {"components",
           JsonObject{{"schemas", named.json()}, {"securitySchemes", security_schemes()}}}};
}

}  // namespace

Route openapi_route(const Router& router) {
  return get_route("/openapi.json",
                   {.summary = "This description", .gives = {{.schema = schema::object}}},
                   [&router] { return json_reply(description(router)); });
}

}  // namespace fovea::serve
