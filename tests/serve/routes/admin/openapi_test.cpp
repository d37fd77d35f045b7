#include <gtest/gtest.h>

#include <set>

#include "serve/routes/admin/routes.h"
#include "serve/routes/answer.h"
#include "serve/routes/llm/routes.h"
#include "serve/routes/route_caller.h"
#include "serve/routes/routes.h"
#include "serve/routes/schema_mismatch.h"
#include "serve/routes/vllm/routes.h"
#include "support/json.h"

namespace fovea::serve {
namespace {

using fovea::test::Json;

/// All routes of a server on the golden model, and the document about them.
struct Described {
  Described() {
    const auto add = [this](std::vector<Route> routes) {
      for (Route& route : routes) router.add(std::move(route));
    };
    add(health_routes(served.service, "test"));
    add(model_routes(served.service));
    add(cache_routes(served.service, store, &publisher));
    router.add(chat_route(encoder, {store, &publisher}, {}));
    router.add(encode_route(encoder));
    router.add(plan_route(encoder));
    add(embedding_routes(encoder));
    router.add(embed_route(encoder));
    add(kserve_routes(encoder));
    add(profile_routes(served.service, trace));
    add(page_routes());
    router.add(openapi_route(router));
    document = test::json_of(test::answer(router, test::request_to("GET", "/openapi.json")));
  }

  [[nodiscard]] Reply call(const std::string& method, const std::string& target,
                           const std::string& body = {}, Headers headers = {}) const {
    return test::answer(router, test::request_to(method, target, body, std::move(headers)));
  }
  /// The schema of the JSON of a reply.
  [[nodiscard]] const Json& reply_schema(const std::string& method, const std::string& pattern,
                                         const std::string& status = "200") const {
    return document["paths"][pattern][method]["responses"][status]["content"]["application/json"]
                   ["schema"];
  }

  test::Served served;
  Encoder encoder{served.service, served.media};
  test::TemporaryDirectory folder;
  RowStore store{100'000'000};
  Publisher publisher{PublisherOptions{.directory = folder.path(), .max_bytes = 100'000'000}};
  Trace trace{folder.path()};
  Router router;
  Json document;
};

const Described& described() {
  static Described all;
  return all;
}

void collect_references(const Json& json, std::set<std::string>& names) {
  if (json.is_object() && json.contains("$ref")) names.insert(json["$ref"]);
  for (const Json& inner : json) collect_references(inner, names);
}

TEST(OpenApi, DescribesEveryRouteWithItsReply) {
  const Json& document = described().document;
  EXPECT_EQ(document["openapi"], "3.1.0");
  std::set<std::string> ids;
  for (const Route& route : described().router.routes()) {
    const Json& methods = document["paths"][route.pattern];
    const std::string method = route.method == "GET"    ? "get"
                               : route.method == "POST" ? "post"
                                                        : "delete";
    const Json& operation = methods[method];
    SCOPED_TRACE(route.method + " " + route.pattern);
    EXPECT_FALSE(operation["summary"].get<std::string>().empty());
    EXPECT_FALSE(operation["responses"]["200"]["content"].empty());
    EXPECT_TRUE(ids.insert(operation["operationId"]).second) << "an id of its own";
    EXPECT_EQ(operation.contains("requestBody"), !route.text.takes.empty());
    if (route.kind == RouteKind::kWork && route.method == "POST") {
      EXPECT_TRUE(operation.contains("requestBody"));
      EXPECT_FALSE(route.text.example.empty());
    }
  }
}

TEST(OpenApi, DescribesWhatALanguageModelIsAsked) {
  UpstreamOptions options;
  options.urls = {"http://127.0.0.1:1"};
  Forwarder forwarder(std::move(options), nullptr);
  Router router;
  for (Route& route : llm_routes(forwarder)) router.add(std::move(route));
  router.add(llm_chat_route(described().encoder, forwarder));
  router.add(openapi_route(router));
  const Json json = test::json_of(test::answer(router, test::request_to("GET", "/openapi.json")));
  EXPECT_EQ(json["paths"].size(), 6U);
  const Json& chat = json["paths"]["/v1/chat/completions"]["post"];
  EXPECT_EQ(chat["requestBody"]["content"]["application/json"]["schema"]["$ref"],
            "#/components/schemas/ProxyChatBody");
  EXPECT_TRUE(json["components"]["schemas"]["ContentPart"]["properties"].contains("max_pixels"));
  for (const Route& route : router.routes()) EXPECT_FALSE(route.text.summary.empty());
}

TEST(OpenApi, RefersToSchemasThatAreThere) {
  std::set<std::string> names;
  collect_references(described().document, names);
  EXPECT_GT(names.size(), 40U);
  for (const std::string& name : names) {
    EXPECT_TRUE(described().document["components"]["schemas"].contains(name.substr(21))) << name;
  }
}

TEST(OpenApi, NamesParametersOfPathsAndQueries) {
  const Json& paths = described().document["paths"];
  const Json& key = paths["/v1/cache/{key}"]["delete"]["parameters"][0];
  EXPECT_EQ(key["name"], "key");
  EXPECT_EQ(key["required"], true);
  std::set<std::string> names;
  for (const Json& parameter : paths["/v1/encode"]["post"]["parameters"])
    names.insert(parameter["name"]);
  EXPECT_TRUE(names.contains("output.format"));
  EXPECT_TRUE(names.contains("fps"));
}

/// A request whose reply is JSON.
struct Asked {
  const char* method;
  std::string pattern;  ///< as in the document
  std::string target;
  std::string body = {};
  Headers headers = {};
};

std::vector<Asked> all_requests() {
  const std::string url = test::data_url(test::shapes());
  const std::string items = R"("items": [{"image": ")" + url + R"(", "id": "a", "uuid": "b"}])";
  const std::string messages = R"("messages": [{"role": "user", "content": [{"type": "image_url",
      "image_url": {"url": ")" +
                               url + R"("}, "uuid": "b"}]}])";
  const std::string data = test::base64_of(test::shapes());
  const std::string infer = R"({"id": "i", "inputs": [{"name": "media", "datatype": "BYTES",
      "shape": [1], "data": [")" +
                            data + R"("]}], "parameters": {"dtype": "float32"}})";
  std::vector<Asked> all{
      {"post", "/v1/encode", "/v1/encode", "{" + items + "}"},
      {"post", "/v1/encode", "/v1/encode", "{" + items + R"(, "output": {"format": "torch",
          "deepstack": "split", "include": ["grid", "timestamps", "timings"]}})"},
      {"post", "/v1/encode", "/v1/encode", "{" + items + R"(, "output": {"format": "torch",
          "include": ["part"]}})"},
      {"post", "/v1/encode", "/v1/encode", "{" + items + R"(, "output": {"pooling": "mean"}})"},
      {"post", "/v1/plan", "/v1/plan", "{" + items + "}"},
      {"post", "/v1/embeddings", "/v1/embeddings", "{" + messages + "}"},
      {"post", "/v1/embeddings", "/v1/embeddings",
       R"({"encoding_format": "base64", "input": ")" + url + "\"}"},
      {"post", "/pooling", "/pooling", "{" + messages + "}"},
      {"post", "/pooling", "/pooling", R"({"task": "embed", )" + messages + "}"},
      {"post", "/v2/embed", "/v2/embed",
       R"({"embedding_types": ["float", "base64"], "images": [")" + url + "\"]}"},
      {"post", "/v1/chat/completions", "/v1/chat/completions", "{" + messages + "}"},
      {"post", "/v1/chat/completions", "/v1/chat/completions", R"({"messages": []})"},
      {"post", "/v2/models/{m}/infer", "/v2/models/m/infer", infer},
      {"post", "/start_profile", "/start_profile"},
      {"post", "/stop_profile", "/stop_profile"},
      {"get", "/v1/cache", "/v1/cache"},
      {"delete", "/v1/cache/{key}", "/v1/cache/b"},
      {"post", "/v1/cache/reset", "/v1/cache/reset"},
      {"get", "/v1/models/{id}", "/v1/models/m"},
      {"get", "/v2/models/{m}", "/v2/models/m"},
      {"get", "/v2/models/{m}/ready", "/v2/models/m/ready"},
      {"get", "/v2/models/{m}/stats", "/v2/models/m/stats"}};
  for (const char* path :
       {"/health", "/livez", "/health_generate", "/version", "/info", "/v1/models", "/v2",
        "/v2/health/live", "/v2/health/ready", "/openapi.json"}) {
    all.push_back({"get", path, path});
  }
  return all;
}

TEST(OpenApi, SaysWhatRepliesHold) {
  for (const Asked& asked : all_requests()) {
    SCOPED_TRACE(std::string(asked.method) + " " + asked.target + " " + asked.body.substr(0, 40));
    std::string method = asked.method;
    for (char& letter : method) letter = static_cast<char>(std::toupper(letter));
    const Reply reply = described().call(method, asked.target, asked.body, asked.headers);
    ASSERT_EQ(reply.status, 200) << test::text_of(reply);
    EXPECT_EQ(test::schema_mismatch(described().document,
                                    described().reply_schema(asked.method, asked.pattern),
                                    test::json_of(reply)),
              "");
  }
}

TEST(OpenApi, SaysWhatErrorsHold) {
  for (const auto& [pattern, target] : {std::pair("/v1/encode", "/v1/encode"),
                                        std::pair("/v2/models/{m}/infer", "/v2/models/m/infer"),
                                        std::pair("/v2/embed", "/v2/embed")}) {
    const Reply reply = described().call("POST", target, "{");
    EXPECT_EQ(reply.status, 400);
    EXPECT_EQ(test::schema_mismatch(described().document,
                                    described().reply_schema("post", pattern, "default"),
                                    test::json_of(reply)),
              "")
        << target;
  }
}

TEST(SchemaMismatch, FindsWhatIsNotSaid) {
  const Json document = Json::parse("{}");
  const Json schema = Json::parse(R"({"type": "object", "required": ["a"], "properties":
      {"a": {"type": "array", "items": {"type": "integer"}}}})");
  const auto mismatch = [&](const char* value) {
    return test::schema_mismatch(document, schema, Json::parse(value));
  };
  EXPECT_EQ(mismatch(R"({"a": [1]})"), "");
  EXPECT_EQ(mismatch(R"({"a": [1.5]})"), "reply.a[] is number, not integer");
  EXPECT_EQ(mismatch("{}"), "reply lacks \"a\"");
  EXPECT_EQ(mismatch(R"({"a": [], "b": 1})"), "reply has b");
}

}  // namespace
}  // namespace fovea::serve
